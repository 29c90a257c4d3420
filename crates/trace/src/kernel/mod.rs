//! The registry of kernel events. A row of [`table`] says all that decoding, reading of texts and
//! writing of files require to know of an event.

pub(crate) mod binary;
pub(crate) mod codec;
pub(crate) mod kind;
mod table;
pub(crate) mod text;

pub(crate) use codec::Value;
pub(crate) use kind::Kind;

use crate::What;
use text::Symbols;

/// The events that are written, in the order of their numbers.
pub(crate) fn written() -> impl Iterator<Item = &'static Kind> {
    table::EVENTS.iter().chain(table::VECTORS)
}

fn all() -> impl Iterator<Item = &'static Kind> {
    written().chain(table::READ_ONLY)
}

/// The event of this name.
pub(crate) fn find(system: &str, name: &str) -> Option<&'static Kind> {
    all().find(|kind| kind.name == name && kind.system == system)
}

/// The event and the values of its fields; `None`: there is no kernel event for it.
pub(crate) fn values(what: &What) -> Option<(&'static Kind, Vec<Value<'_>>)> {
    all().find_map(|kind| Some((kind, (kind.write)(what)?)))
}

/// An event of a text. `None`: it has no meaning here; `Err`: its fields are not as expected.
pub(crate) fn parse(name: &str, text: &str, symbols: &mut Symbols) -> Option<Result<What, ()>> {
    let parse = all().find(|kind| kind.name == name)?.parse?;
    let what = parse(text, symbols).or_else(|| text::of_trace_cmd(name, text));
    Some(what.map(completed).ok_or(()))
}

/// The kernel writes the end of idle as a state of -1.
pub(crate) fn completed(what: What) -> What {
    match what {
        What::Idle { state: u32::MAX } => What::IdleExit,
        what => what,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::KERNELS;

    #[test]
    fn every_event_fits_and_is_one_that_the_test_kernel_writes() {
        let formats = KERNELS[0].formats();
        for kind in all() {
            assert!(kind.fields.len() <= kind::FIELDS_MAX, "{}", kind.name);
            let name = format!("{}:{}", kind.system, kind.name);
            // Two of the vectors stand for all.
            if kind.system == "irq_vectors" {
                continue;
            }
            let format = formats.event(&name).expect(&name);
            for field in kind.fields.iter().filter(|field| field.wanted != binary::Wanted::Nothing)
            {
                let place = binary::Place::of(format, field.name(), field.wanted);
                assert!(place.is_some(), "{name}: {}", field.name());
            }
        }
    }
}
