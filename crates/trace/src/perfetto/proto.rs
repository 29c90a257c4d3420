//! The little of Protocol Buffers that is needed to write: numbers, texts, messages in messages.

/// A message as it grows.
#[derive(Default)]
pub(super) struct Message {
    bytes: Vec<u8>,
}

impl Message {
    pub(super) const fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.bytes.push(value as u8);
    }

    /// An unsigned number, or one of the kinds that are stored like it.
    pub(super) fn number(&mut self, field: u64, value: u64) {
        self.varint(field << 3);
        self.varint(value);
    }

    /// A signed number (int32, int64): its 64 bits.
    pub(super) fn int(&mut self, field: u64, value: impl Into<i64>) {
        self.number(field, value.into().cast_unsigned());
    }

    pub(super) fn text(&mut self, field: u64, value: &str) {
        self.data(field, value.as_bytes());
    }

    /// A message in this one.
    pub(super) fn message(&mut self, field: u64, value: &Self) {
        self.data(field, &value.bytes);
    }

    fn data(&mut self, field: u64, data: &[u8]) {
        self.varint(field << 3 | 2);
        self.varint(data.len() as u64);
        self.bytes.extend_from_slice(data);
    }
}

/// A number at the start, and what is behind.
#[cfg(test)]
pub(super) fn read_varint(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut value = 0;
    for (at, &byte) in bytes.iter().enumerate().take(10) {
        value |= u64::from(byte & 0x7f) << (7 * at);
        if byte & 0x80 == 0 {
            return Some((value, &bytes[at + 1..]));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_as_many_bytes_as_they_need() {
        let mut message = Message::default();
        message.number(1, 150);
        message.int(2, -1);
        message.text(11, "a");
        assert_eq!(
            message.into_bytes(),
            [8, 0x96, 1, 16, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1, 0x5a, 1, b'a']
        );
    }
}
