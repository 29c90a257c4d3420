//! Variables of the EFI firmware that the boot loader reads.

use crate::change::Bytes;
use crate::tune::kind::{
    ChangeError, Kind, Machine, Nature, Pace, Part, Rank, Side, State, Three, places, text,
};

/// Attributes of a variable of the firmware: kept without power, seen by the boot loader and by
/// the running system (UEFI, "GetVariable").
const EFI_ATTRIBUTES: [u8; 4] = [7, 0, 0, 0];

/// One variable that holds a text.
pub(super) struct EfiVariable<'a> {
    pub(super) name: &'a str,
    pub(super) value: &'a str,
}

impl EfiVariable<'_> {
    fn path(&self) -> String {
        format!("/sys/firmware/efi/efivars/{}", self.name)
    }

    /// Its bytes: the text as UTF-16 with its NUL.
    fn bytes(&self) -> Bytes {
        let units = self.value.encode_utf16().chain([0]).flat_map(u16::to_le_bytes);
        Bytes(EFI_ATTRIBUTES.into_iter().chain(units).collect())
    }

    fn put(&self, machine: &Machine<'_>, bytes: &Bytes) -> Result<(), ChangeError> {
        let path = self.path();
        if !machine.root.exists("/sys/firmware/efi/efivars") {
            let why = "no variables of the firmware here: not started by EFI, or efivarfs is not \
                       mounted";
            return Err(ChangeError::Refused { path, why: why.into() });
        }
        machine.gate.variable(&path, &bytes.0).map_err(|error| machine.refusal(&path, error))
    }
}

impl Kind for EfiVariable<'_> {
    fn target(&self) -> String {
        format!("EFI variable {}", self.name)
    }

    fn wanted(&self) -> String {
        self.value.to_owned()
    }

    fn before(&self, state: &State) -> String {
        match state {
            State::Value { bytes, .. } => text::shown(&utf16(&bytes.0)),
            _ => text::state(state),
        }
    }

    fn may_be_made(&self) -> Result<(), String> {
        places::name(self.name, "a variable of the firmware")
    }

    fn nature(&self) -> Nature {
        Nature { part: Part::Loader, rank: Rank::BootLoader, pace: Pace::Later, is_durable: true }
    }

    fn state(&self, machine: &Machine<'_>) -> Result<State, ChangeError> {
        match machine.bytes(&self.path()) {
            Ok(bytes) => Ok(State::Value { bytes, couples: Vec::new() }),
            Err(ChangeError::Missing { .. }) => Ok(State::Absent),
            Err(error) => Err(error),
        }
    }

    fn is_done(&self, _: &Machine<'_>, state: &State) -> bool {
        matches!(state, State::Value { bytes, .. } if *bytes == self.bytes())
    }

    fn write(&self, machine: &Machine<'_>, _before: &State) -> Result<(), ChangeError> {
        self.put(machine, &self.bytes())
    }

    fn side(&self, machine: &Machine<'_>, three: Three<'_>) -> Side {
        match three.current {
            State::Value { bytes, .. } if machine.is_torn(bytes, three) => Side::Ours,
            _ => three.side(|state| self.is_done(machine, state)),
        }
    }

    fn restore(&self, machine: &Machine<'_>, three: Three<'_>) -> Result<(), ChangeError> {
        match three.before {
            State::Value { bytes, .. } => self.put(machine, bytes),
            State::Absent => {
                let path = self.path();
                machine.gate.remove_variable(&path).map_err(|error| machine.refusal(&path, error))
            }
            other => Err(ChangeError::not_expected(other, "the state of this change")),
        }
    }
}

/// Text of a firmware variable: four bytes of attributes, then UTF-16 with its NUL.
fn utf16(bytes: &[u8]) -> String {
    let units = bytes.get(4..).unwrap_or_default().chunks_exact(2);
    let units: Vec<u16> = units.map(|pair| u16::from_le_bytes([pair[0], pair[1]])).collect();
    String::from_utf16_lossy(&units).trim_end_matches('\0').to_owned()
}
