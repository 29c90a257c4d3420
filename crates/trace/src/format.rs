//! Where the fields of events lie: from the kernel's own `header_page` and `format` files, so that
//! nothing is assumed of its version, word size or byte order.

use std::collections::BTreeMap;

use thiserror::Error;

/// Order of the bytes of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ByteOrder {
    Little,
    Big,
}

impl ByteOrder {
    /// That of the machine this runs on.
    pub const fn native() -> Self {
        if cfg!(target_endian = "big") { Self::Big } else { Self::Little }
    }
}

/// Why a text of the kernel cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FormatError {
    /// The layout of a sub-buffer is not as expected.
    #[error("events/header_page: {field}: {problem}; got: {text:?}")]
    HeaderPage {
        /// Field of the header.
        field: &'static str,
        /// What is wrong with it.
        problem: &'static str,
        /// The text, its beginning.
        text: String,
    },
    /// A `format` file without name or number.
    #[error("format file of an event in {system}: no \"{missing}\" line; begins with {text:?}")]
    Event {
        /// System of the event.
        system: String,
        /// The word that a line begins with.
        missing: &'static str,
        /// The text, its beginning.
        text: String,
    },
    /// A line of a `format` file.
    #[error(
        "format file of {event}, line {line}: {text:?}; expected \"field:TYPE NAME; offset:N; \
         size:N; signed:N;\""
    )]
    Line {
        /// `system:name`.
        event: String,
        /// Number of the line, from 1.
        line: usize,
        text: String,
    },
}

/// Layout of a sub-buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageLayout {
    /// Order of bytes, which is that of bit fields, too.
    pub order: ByteOrder,
    /// Size of the kernel's `long`: 4 or 8.
    pub long_bytes: usize,
    /// Where the time stamp begins.
    pub stamp_at: usize,
    /// Where the number of committed bytes begins.
    pub commit_at: usize,
    /// Where the data begins.
    pub data_at: usize,
    /// Size of the data at most.
    pub data_bytes: usize,
}

/// The `format` file of one event, parsed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventFormat {
    /// Its number in this kernel.
    pub id: u16,
    /// System, e.g. `sched`.
    pub system: String,
    /// Name, e.g. `sched_switch`.
    pub name: String,
    /// Fields, the common ones first.
    pub fields: Vec<Field>,
    /// The file, as the kernel wrote it.
    pub text: String,
    full_name: String,
}

impl EventFormat {
    /// The field of a name.
    pub fn field(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find(|field| field.name == name)
    }

    /// `system:name`.
    pub fn full_name(&self) -> &str {
        &self.full_name
    }
}

/// The formats of one kernel's events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Formats {
    layout: PageLayout,
    header_page: String,
    header_event: String,
    events: BTreeMap<u16, EventFormat>,
    ids: BTreeMap<String, u16>,
}

/// Largest sub-buffer that is believed: four times what any kernel offers.
const SUB_BUFFER_BYTES_MAX: usize = 1 << 26;

/// How much of a bad text an error quotes.
const QUOTED_CHARS: usize = 80;

impl Formats {
    /// From the text of `events/header_page`; the size of `long` is that of its commit field.
    ///
    /// # Errors
    /// When a field is missing, or has a size that no kernel gives it.
    pub fn new(header_page: &str, order: ByteOrder) -> Result<Self, FormatError> {
        let bad = |field, problem| {
            let text = quoted(header_page);
            FormatError::HeaderPage { field, problem, text }
        };
        let fields: Vec<Field> = header_page.lines().filter_map(Field::parse).collect();
        let field = |name: &'static str| {
            let found = fields.iter().find(|field| field.name == name);
            found.ok_or_else(|| bad(name, "the field is missing"))
        };
        let (stamp, commit, data) = (field("timestamp")?, field("commit")?, field("data")?);
        if stamp.size != 8 {
            return Err(bad("timestamp", "its size is not 8"));
        }
        if !matches!(commit.size, 4 | 8) {
            return Err(bad("commit", "its size is neither 4 nor 8"));
        }
        if data.at < (stamp.at + 8).max(commit.at + commit.size) {
            return Err(bad("data", "it begins inside the header"));
        }
        if data.size == 0 || data.at + data.size > SUB_BUFFER_BYTES_MAX {
            return Err(bad("data", "its size is not that of a sub-buffer"));
        }
        let layout = PageLayout {
            order,
            long_bytes: commit.size,
            stamp_at: stamp.at,
            commit_at: commit.at,
            data_at: data.at,
            data_bytes: data.size,
        };
        Ok(Self {
            layout,
            header_page: header_page.to_owned(),
            header_event: String::new(),
            events: BTreeMap::new(),
            ids: BTreeMap::new(),
        })
    }

    /// Adds an event from its `format` file. One of the same number or name is replaced.
    ///
    /// # Errors
    /// When it has no name or number, or a line that is no field. Nothing is added then.
    pub fn add(&mut self, system: &str, text: &str) -> Result<(), FormatError> {
        let word = |missing: &'static str| {
            let mut lines = text.lines();
            let found = lines.find_map(|line| line.strip_prefix(missing)).map(str::trim);
            found.ok_or_else(|| FormatError::Event {
                system: system.to_owned(),
                missing,
                text: quoted(text),
            })
        };
        let name = word("name:")?;
        let id = word("ID:")?.parse().map_err(|_| FormatError::Event {
            system: system.to_owned(),
            missing: "ID:",
            text: quoted(text),
        })?;
        let full_name = format!("{system}:{name}");
        let mut fields = Vec::new();
        for (at, line) in text.lines().enumerate() {
            if line.starts_with("print fmt") {
                break;
            }
            if !line.trim_start().starts_with("field") {
                continue;
            }
            fields.push(Field::parse(line).ok_or_else(|| FormatError::Line {
                event: full_name.clone(),
                line: at + 1,
                text: quoted(line),
            })?);
        }
        if let Some(before) = self.ids.insert(full_name.clone(), id) {
            self.events.remove(&before);
        }
        let (system, name) = (system.to_owned(), name.to_owned());
        let text = text.to_owned();
        let format = EventFormat { id, system, name, fields, text, full_name };
        if let Some(before) = self.events.insert(id, format)
            && self.ids.get(before.full_name()) == Some(&id)
            && self.events.get(&id).is_some_and(|now| now.full_name != before.full_name)
        {
            self.ids.remove(before.full_name());
        }
        Ok(())
    }

    /// Keeps the text of `events/header_event`, which other tools want in a trace.dat.
    pub fn set_header_event(&mut self, text: &str) {
        text.clone_into(&mut self.header_event);
    }

    /// Whether there is an event of this full name, e.g. `sched:sched_switch`.
    pub fn has(&self, full_name: &str) -> bool {
        self.ids.contains_key(full_name)
    }

    /// The event of a full name.
    pub fn event(&self, full_name: &str) -> Option<&EventFormat> {
        self.events.get(self.ids.get(full_name)?)
    }

    /// The full name of a number, e.g. `sched:sched_switch`.
    pub fn event_name(&self, id: u16) -> Option<&str> {
        self.events.get(&id).map(EventFormat::full_name)
    }

    /// All events, by number.
    pub fn events(&self) -> impl Iterator<Item = &EventFormat> {
        self.events.values()
    }

    /// Layout of a sub-buffer.
    pub const fn layout(&self) -> &PageLayout {
        &self.layout
    }

    /// Size of a sub-buffer with its header, bytes.
    pub const fn sub_buffer_bytes(&self) -> usize {
        self.layout.data_at + self.layout.data_bytes
    }

    /// The text of `events/header_page`.
    pub fn header_page(&self) -> &str {
        &self.header_page
    }

    /// The text of `events/header_event`; empty: it was not given.
    pub fn header_event(&self) -> &str {
        &self.header_event
    }
}

fn quoted(text: &str) -> String {
    text.chars().take(QUOTED_CHARS).collect()
}

// One line of a `format` file: where a field lies in a record and how it is stored.

/// How a field is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldShape {
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
    /// Bytes that it takes in the record.
    pub size: usize,
    /// Whether it is signed.
    pub signed: bool,
    /// How it is stored.
    pub shape: FieldShape,
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
fn declaration(text: &str) -> Option<(&str, FieldShape)> {
    let (name, is_array) = match text.strip_suffix(']').and_then(|text| text.rsplit_once('[')) {
        Some((before, _)) => (before.trim_end(), true),
        None => (text, text.split_whitespace().any(|word| word.ends_with(']'))),
    };
    let name = name.rsplit(|c: char| c.is_whitespace() || c == '*').next()?;
    let shape = match text.split_whitespace().next()? {
        "__data_loc" => FieldShape::DataLoc,
        "__rel_loc" => FieldShape::RelLoc,
        _ if is_array => FieldShape::Array,
        _ => FieldShape::One,
    };
    (!name.is_empty()).then_some((name, shape))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE_64: &str = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
        \tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n\
        \tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n\
        \tfield: char data;\toffset:16;\tsize:4080;\tsigned:0;\n";

    fn event(name: &str, id: u32) -> String {
        format!(
            "name: {name}\nID: {id}\nformat:\n\
             \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\n\
             \tfield:int x;\toffset:8;\tsize:4;\tsigned:1;\n\n\
             print fmt: \"field: %d\", REC->x\n"
        )
    }

    #[test]
    fn the_layout_is_that_of_the_header_page() {
        let formats = Formats::new(PAGE_64, ByteOrder::Little).expect("a header page");
        assert_eq!(formats.sub_buffer_bytes(), 4096);
        assert_eq!(formats.layout().long_bytes, 8);
        let text = PAGE_64.replace("size:8;\tsigned:1", "size:4;\tsigned:1");
        let text = text.replace("offset:16;\tsize:4080", "offset:12;\tsize:65524");
        let formats = Formats::new(&text, ByteOrder::Big).expect("a header page");
        assert_eq!((formats.sub_buffer_bytes(), formats.layout().long_bytes), (65536, 4));
        assert_eq!(formats.header_page(), text);
    }

    #[test]
    fn a_header_page_that_cannot_be_is_refused_with_the_field() {
        for (from, to, field) in [
            ("timestamp", "time", "timestamp"),
            ("u64 timestamp;\toffset:0;\tsize:8", "u64 timestamp;\toffset:0;\tsize:4", "timestamp"),
            ("commit;\toffset:8;\tsize:8", "commit;\toffset:8;\tsize:2", "commit"),
            ("offset:16", "offset:12", "data"),
            ("size:4080", "size:0", "data"),
            ("size:4080", "size:67108864", "data"),
        ] {
            let error = Formats::new(&PAGE_64.replace(from, to), ByteOrder::Little);
            assert!(
                matches!(&error, Err(FormatError::HeaderPage { field: f, .. }) if *f == field),
                "{from} -> {to}: {error:?}"
            );
        }
    }

    #[test]
    fn events_are_known_by_name_and_number() {
        let mut formats = Formats::new(PAGE_64, ByteOrder::Little).expect("a header page");
        formats.add("sched", &event("sched_switch", 372)).expect("a format");
        formats.add("my", &event("thing", 7)).expect("a format");
        assert!(formats.has("sched:sched_switch") && !formats.has("sched_switch"));
        assert_eq!(formats.event_name(7), Some("my:thing"));
        let field = formats.event("my:thing").and_then(|event| event.field("x"));
        assert_eq!(field.map(|field| (field.at, field.signed)), Some((8, true)));
        let texts: Vec<_> = formats.events().map(|event| event.text.as_str()).collect();
        assert_eq!(texts, [event("thing", 7), event("sched_switch", 372)]);
        // The same name with another number, the same number with another name.
        formats.add("my", &event("thing", 8)).expect("a format");
        formats.add("my", &event("other", 8)).expect("a format");
        assert_eq!((formats.event_name(7), formats.event_name(8)), (None, Some("my:other")));
        assert!(!formats.has("my:thing"));
    }

    #[test]
    fn a_bad_format_is_refused_and_leaves_nothing() {
        let mut formats = Formats::new(PAGE_64, ByteOrder::Little).expect("a header page");
        for (text, complaint) in [
            (event("x", 1).replace("name:", "nom:"), "no \"name:\" line"),
            (event("x", 1).replace("ID: 1", "ID: 70000"), "no \"ID:\" line"),
            (event("x", 1).replace("offset:8", "offset:?"), "line 6"),
        ] {
            let error = formats.add("s", &text).expect_err(&text);
            assert!(error.to_string().contains(complaint), "{error}");
        }
        assert_eq!(formats.events().count(), 0);
    }
}

#[cfg(test)]
mod field_tests {
    use super::*;

    fn field(declared: &str) -> Option<Field> {
        Field::parse(&format!("\tfield:{declared};\toffset:8;\tsize:4;\tsigned:1;\n"))
    }

    #[test]
    fn every_way_of_the_kernels_to_declare_a_field_is_read() {
        for (declared, name, shape) in [
            ("pid_t prev_pid", "prev_pid", FieldShape::One),
            ("void * hrtimer", "hrtimer", FieldShape::One),
            ("const char *reason", "reason", FieldShape::One),
            ("unsigned long caller[8]", "caller", FieldShape::Array),
            ("unsigned long caller[]", "caller", FieldShape::Array),
            ("char prev_comm[TASK_COMM_LEN]", "prev_comm", FieldShape::Array),
            ("__data_loc char[] name", "name", FieldShape::DataLoc),
            ("__data_loc cpumask_t cpumask", "cpumask", FieldShape::DataLoc),
            ("__data_loc unsigned long[] target_cpus", "target_cpus", FieldShape::DataLoc),
            ("__rel_loc char[] name", "name", FieldShape::RelLoc),
            ("enum hrtimer_mode mode", "mode", FieldShape::One),
            (" u64 timestamp", "timestamp", FieldShape::One),
        ] {
            let found = field(declared).expect(declared);
            assert_eq!((found.name.as_str(), found.shape), (name, shape), "{declared}");
            assert_eq!((found.at, found.size, found.signed), (8, 4, true));
        }
    }

    #[test]
    fn invalid_fields_are_refused() {
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
