//! One line of a `format` file: where a field lies in a record and how it is stored.

/// How a field is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// One number or pointer.
    One,
    /// An array in place. Its size may be 0: then it goes to the end of the record.
    Array,
    /// `__data_loc`: a u32, its upper half the length, its lower half where the data begins,
    /// counted from the start of the record.
    DataLoc,
    /// `__rel_loc` (5.17): the same, counted from the end of this u32.
    RelLoc,
}

/// A field of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    pub name: String,
    /// Where it begins in the record, bytes.
    pub at: usize,
    /// Its size, bytes.
    pub size: usize,
    /// Whether it is signed.
    pub signed: bool,
    /// How it is stored.
    pub shape: Shape,
}

/// Largest offset or size that is believed; records are smaller than a sub-buffer.
const BYTES_MAX: usize = 1 << 26;

impl Field {
    /// A line such as `field:pid_t prev_pid; offset:24; size:4; signed:1;`. `None`: not one.
    pub fn parse(line: &str) -> Option<Self> {
        let mut parts = line.trim().split(';').map(str::trim);
        let (word, declared) = parts.next()?.split_once(':')?;
        if word != "field" && word != "field special" {
            return None;
        }
        let (mut at, mut size, mut signed) = (None, None, false);
        for part in parts.filter(|part| !part.is_empty()) {
            let (key, value) = part.split_once(':')?;
            match key {
                "offset" => at = Some(bytes(value)?),
                "size" => size = Some(bytes(value)?),
                "signed" => signed = value.trim() == "1",
                _ => {}
            }
        }
        let (name, shape) = declaration(declared.trim())?;
        Some(Self { name: name.to_owned(), at: at?, size: size?, signed, shape })
    }
}

fn bytes(text: &str) -> Option<usize> {
    text.trim().parse().ok().filter(|&bytes| bytes <= BYTES_MAX)
}

/// Name and shape of `unsigned long caller[8]`, `__data_loc char[] name`, `const char *reason`.
fn declaration(text: &str) -> Option<(&str, Shape)> {
    let (name, is_array) = match text.strip_suffix(']').and_then(|text| text.rsplit_once('[')) {
        Some((before, _)) => (before.trim_end(), true),
        None => (text, text.split_whitespace().any(|word| word.ends_with(']'))),
    };
    let name = name.rsplit(|c: char| c.is_whitespace() || c == '*').next()?;
    let shape = match text.split_whitespace().next()? {
        "__data_loc" => Shape::DataLoc,
        "__rel_loc" => Shape::RelLoc,
        _ if is_array => Shape::Array,
        _ => Shape::One,
    };
    (!name.is_empty()).then_some((name, shape))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(declared: &str) -> Option<Field> {
        Field::parse(&format!("\tfield:{declared};\toffset:8;\tsize:4;\tsigned:1;\n"))
    }

    #[test]
    fn every_way_of_the_kernels_to_declare_a_field_is_read() {
        for (declared, name, shape) in [
            ("pid_t prev_pid", "prev_pid", Shape::One),
            ("void * hrtimer", "hrtimer", Shape::One),
            ("const char *reason", "reason", Shape::One),
            ("unsigned long caller[8]", "caller", Shape::Array),
            ("unsigned long caller[]", "caller", Shape::Array),
            ("char prev_comm[TASK_COMM_LEN]", "prev_comm", Shape::Array),
            ("__data_loc char[] name", "name", Shape::DataLoc),
            ("__data_loc cpumask_t cpumask", "cpumask", Shape::DataLoc),
            ("__data_loc unsigned long[] target_cpus", "target_cpus", Shape::DataLoc),
            ("__rel_loc char[] name", "name", Shape::RelLoc),
            ("enum hrtimer_mode mode", "mode", Shape::One),
            (" u64 timestamp", "timestamp", Shape::One),
        ] {
            let found = field(declared).expect(declared);
            assert_eq!((found.name.as_str(), found.shape), (name, shape), "{declared}");
            assert_eq!((found.at, found.size, found.signed), (8, 4, true));
        }
    }

    #[test]
    fn what_is_no_field_is_none() {
        for line in [
            "",
            "print fmt: \"x\"",
            "field:int x;",
            "field:int x; offset:-1; size:4;",
            "field:int x; offset:8; size:99999999999;",
            "field:; offset:0; size:4;",
            "field:int x; offset 8; size:4;",
        ] {
            assert_eq!(Field::parse(line), None, "{line}");
        }
    }
}
