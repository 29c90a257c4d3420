//! The kernel events as a trace.dat of rtproof declares them, with names and fields as the kernel
//! has them, so that readers take them for the kernel's.

use std::fmt::Write as _;

use crate::kernel::{self, Kind, kind::Field};

/// How a field is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stored {
    /// A number of so many bytes.
    Number(u8),
    /// `char[16]`.
    Comm,
    /// `__data_loc char[]`: a text behind the fields.
    Text,
    /// `__data_loc cpumask_t`: a mask behind the fields.
    Mask,
    /// Addresses to the end of the record.
    Addresses,
}

/// Numbers that the kernel gives to events, not to its own entries.
const FIRST_ID: u16 = 100;
/// Bytes of the common fields.
pub(super) const COMMON: usize = 8;

/// The number of an event.
pub(super) fn id(kind: &Kind) -> Option<u16> {
    let place = kernel::written().position(|other| other.name == kind.name)?;
    Some(FIRST_ID + u16::try_from(place).ok()?)
}

/// How a 64-bit kernel stores a field, and whether it is signed; `None`: it is not stored.
pub(super) fn stored(field: &Field) -> Option<(Stored, bool)> {
    let (declared, _) = field.declared.rsplit_once(' ')?;
    let is_signed = matches!(declared, "int" | "pid_t" | "long" | "s32" | "s64");
    let stored = match declared {
        "" => return None,
        "char" => Stored::Comm,
        "__data_loc char[]" => Stored::Text,
        "__data_loc cpumask_t" => Stored::Mask,
        _ if field.declared.ends_with(']') => Stored::Addresses,
        "void *" | "long" | "unsigned long" | "s64" | "u64" => Stored::Number(8),
        _ => Stored::Number(4),
    };
    Some((stored, is_signed))
}

impl Stored {
    pub(super) const fn align(self) -> usize {
        match self {
            Self::Number(bytes) => bytes as usize,
            Self::Comm => 1,
            Self::Text | Self::Mask => 4,
            Self::Addresses => 8,
        }
    }

    pub(super) const fn size(self) -> usize {
        match self {
            Self::Number(bytes) => bytes as usize,
            Self::Comm => 16,
            Self::Text | Self::Mask => 4,
            // As the kernel declares it; there may be fewer, or more.
            Self::Addresses => 64,
        }
    }
}

/// The format of an event in the form of the kernel's files.
pub(super) fn format(id: u16, kind: &Kind) -> String {
    let mut text = format!(
        "name: {}\nID: {id}\nformat:\n\
         \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
         \tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n\
         \tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n\
         \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n",
        kind.name
    );
    let mut at = COMMON;
    for field in kind.fields {
        let Some((stored, is_signed)) = stored(field) else { continue };
        let declared = field.declared;
        at = at.next_multiple_of(stored.align());
        let _ = writeln!(
            text,
            "\tfield:{declared};\toffset:{at};\tsize:{};\tsigned:{};",
            stored.size(),
            u8::from(is_signed)
        );
        at += stored.size();
    }
    let _ = write!(text, "\nprint fmt: {}\n", kind.print);
    text
}

/// The header of a page as 64-bit kernels have it.
pub(super) const HEADER_PAGE: &str = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
     \tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n\
     \tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n\
     \tfield: char data;\toffset:16;\tsize:4080;\tsigned:0;\n";

/// The header of an event.
pub(super) const HEADER_EVENT: &str = "# compressed entry header\n\
     \ttype_len    :    5 bits\n\ttime_delta  :   27 bits\n\tarray       :   32 bits\n\n\
     \tpadding     : type == 29\n\ttime_extend : type == 30\n\ttime_stamp : type == 31\n\
     \tdata max type_len  == 28\n";

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_are_unique_and_fields_lie_where_the_kernel_has_them() {
        let names: BTreeSet<_> = kernel::written().map(|kind| kind.name).collect();
        assert_eq!(names.len(), kernel::written().count());
        let switch = kernel::find("sched", "sched_switch").expect("a kind");
        let text = format(id(switch).expect("a number"), switch);
        for line in [
            "field:char prev_comm[16];\toffset:8;\tsize:16;",
            "field:long prev_state;\toffset:32;\tsize:8;\tsigned:1;",
            "field:int next_prio;\toffset:60;\tsize:4;",
        ] {
            assert!(text.contains(line), "{text}");
        }
    }
}
