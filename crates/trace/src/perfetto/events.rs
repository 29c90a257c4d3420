//! Kernel events as Perfetto has them. Interrupts that it has no event for are shown as those of
//! devices; the rest as generic events with the kernel's names.

use super::proto::Message;
use crate::{
    Event, What, Window,
    kernel::{self, Value, kind::Perfetto},
};

/// Field of `FtraceEvent` with an event that Perfetto does not know.
const GENERIC: u64 = 327;

/// The `FtraceEvent`; `None`: nothing that can be shown as one.
pub(super) fn encode(event: &Event, window: &Window) -> Option<Message> {
    let (field, body) = noise(&event.what).or_else(|| body(event, window))?;
    let mut message = Message::default();
    message.number(1, event.at_ns);
    // Stored as unsigned, the idle task as 0.
    message.int(2, event.pid);
    message.number(5, u64::from(event.flags));
    message.message(field, &body);
    Some(message)
}

fn body(event: &Event, window: &Window) -> Option<(u64, Message)> {
    let (kind, values) = kernel::values(&event.what)?;
    let fields = kind.fields.iter().zip(values).filter(|(field, _)| field.number > 0);
    let mut fields: Vec<_> = fields.collect();
    fields.sort_by_key(|(field, _)| field.number);
    let mut message = Message::default();
    let message_field = match kind.perfetto {
        Perfetto::Apart => return None,
        Perfetto::Message(field) => field,
        Perfetto::Generic => {
            message.text(1, kind.name);
            GENERIC
        }
    };
    for (field, value) in fields {
        let number = match value {
            Value::Number(value) | Value::Symbol(value) | Value::Offset(value) => value,
            Value::Tid(tid) => i64::from(tid).cast_unsigned(),
            Value::OwnCpu => u64::from(event.cpu),
            Value::Mask(mask) => mask & u64::from(u32::MAX),
            Value::Text(text) => {
                message.text(field.number, &String::from_utf8_lossy(text));
                continue;
            }
            Value::Addresses(_) => continue,
        };
        match (kind.perfetto, value) {
            (Perfetto::Generic, Value::Symbol(address)) => {
                let name = window.symbol_or_address(address);
                named(&mut message, field.name(), |field| field.text(3, &name));
            }
            (Perfetto::Generic, _) => {
                named(&mut message, field.name(), |field| field.number(5, number));
            }
            _ => message.number(field.number, number),
        }
    }
    Some((message_field, message))
}

/// Noise of any kind has the same fields.
fn noise(what: &What) -> Option<(u64, Message)> {
    let What::Noise { kind, name, number, start_ns, duration_ns } = what else { return None };
    let mut message = Message::default();
    message.text(1, &format!("{kind}_noise"));
    named(&mut message, "name", |field| field.text(3, &name.to_string()));
    named(&mut message, "number", |field| field.int(4, *number));
    named(&mut message, "start", |field| field.number(5, *start_ns));
    named(&mut message, "duration", |field| field.number(5, *duration_ns));
    Some((GENERIC, message))
}

/// Adds a field with a name.
fn named(message: &mut Message, name: &str, fill: impl FnOnce(&mut Message)) {
    let mut field = Message::default();
    field.text(1, name);
    fill(&mut field);
    message.message(2, &field);
}
