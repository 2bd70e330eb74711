//! The kernel's description of an event: `events/SYSTEM/NAME/format` and `events/header_page`.
//!
//! Formats change between kernels, so only the content of the format file is used. Offset, size and signedness of a
//! field are enough; the name of its type is not interpreted.

use serde::{Deserialize, Serialize};

use crate::ProbeError;

/// How to find the bytes of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FieldShape {
    /// A number of `size` bytes at `offset`.
    Scalar,
    /// `length` elements in `size` bytes at `offset`; contains `length`.
    Array(usize),
    /// A 32-bit word at `offset` that locates the data (`__data_loc`). Its lower half is the position from the start of
    /// the event, its upper half the length.
    DataLocation,
    /// A 32-bit word at `offset` that locates the data (`__rel_loc`). Its lower half is the position from the end of
    /// the word, its upper half the length.
    RelativeLocation,
}

/// One field of an event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Field {
    /// Name of the field.
    pub name: String,
    /// Type of the field in C.
    pub kind: String,
    /// Offset of the field in bytes from the start of the event's data.
    pub offset: usize,
    /// Size of the field in bytes.
    pub size: usize,
    /// True if the field is a signed number.
    pub signed: bool,
    /// How to find the bytes of the field.
    pub shape: FieldShape,
}

/// Format of one event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventFormat {
    /// Name of the subsystem, such as `vmscan`.
    pub system: String,
    /// Name of the event, such as `mm_vmscan_direct_reclaim_begin`.
    pub name: String,
    /// Numeric ID of the event in the trace data. The kernel assigns it at boot, so it differs between kernels.
    pub id: u16,
    /// All fields of the event, common fields first.
    pub fields: Vec<Field>,
}

/// Upper limit for offset and size of a field. An event fits into a sub-buffer, which has at most a few MiB.
const MAX_FIELD_BYTES: usize = 1 << 24;

impl EventFormat {
    /// Parses a format file. Lines that are not fields are ignored. Fails if a field has no offset or size, or if name
    /// or ID is missing.
    pub fn parse(system: &str, text: &str) -> Result<Self, ProbeError> {
        let mut name = None;
        let mut id = None;
        let mut fields = Vec::new();
        let what = || format!("the format of an event of {system}");
        for line in text.lines() {
            if let Some(value) = line.strip_prefix("name:") {
                name = Some(value.trim().to_owned());
            } else if let Some(value) = line.strip_prefix("ID:") {
                id = value.trim().parse().ok();
            } else if line.starts_with("print fmt:") {
                break;
            } else if let Some(declared) = line.trim_start().strip_prefix("field:") {
                let field = parse_field(declared).ok_or_else(|| {
                    ProbeError::malformed(what(), format!("`{}` is no field", line.trim()))
                })?;
                fields.push(field);
            }
        }
        let name = name.ok_or_else(|| ProbeError::malformed(what(), "it names no event"))?;
        let id = id.ok_or_else(|| {
            ProbeError::malformed(what(), format!("{name} has no number below 65536"))
        })?;
        Ok(Self {
            system: system.to_owned(),
            name,
            id,
            fields,
        })
    }

    /// Returns the field with this name; `None` if the event does not have it.
    pub fn field(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find(|field| field.name == name)
    }
}

/// Parses a line such as `field:unsigned long nr_scanned; offset:16; size:8; signed:0;` without `field:`; else `None`.
fn parse_field(text: &str) -> Option<Field> {
    let mut parts = text.split(';').map(str::trim);
    let declaration = parts.next()?;
    let (mut offset, mut size, mut signed) = (None, None, false);
    for part in parts {
        if let Some(value) = part.strip_prefix("offset:") {
            offset = value.trim().parse().ok();
        } else if let Some(value) = part.strip_prefix("size:") {
            size = value.trim().parse().ok();
        } else if let Some(value) = part.strip_prefix("signed:") {
            signed = value.trim() == "1";
        }
    }
    let (offset, size): (usize, usize) = (offset?, size?);
    if offset > MAX_FIELD_BYTES || size > MAX_FIELD_BYTES {
        return None;
    }
    let (declaration, length) = match declaration.strip_suffix(']') {
        Some(open) => {
            let (before, length) = open.rsplit_once('[')?;
            // `char comm[TASK_COMM_LEN]` is possible; then the length is the size.
            (
                before.trim_end(),
                Some(length.trim().parse().unwrap_or(size)),
            )
        }
        None => (declaration, None),
    };
    let name_start = declaration
        .rfind(|c: char| !(c.is_alphanumeric() || c == '_'))
        .map_or(0, |at| {
            at + declaration[at..].chars().next().map_or(1, char::len_utf8)
        });
    let name = &declaration[name_start..];
    if name.is_empty() {
        return None;
    }
    let kind = declaration[..name_start].trim().to_owned();
    let shape = if kind.starts_with("__data_loc") {
        FieldShape::DataLocation
    } else if kind.starts_with("__rel_loc") {
        FieldShape::RelativeLocation
    } else if let Some(length) = length {
        FieldShape::Array(length)
    } else {
        FieldShape::Scalar
    };
    Some(Field {
        name: name.to_owned(),
        kind,
        offset,
        size,
        signed,
        shape,
    })
}

/// Layout of a sub-buffer (`events/header_page`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageLayout {
    /// Size in bytes of the word with the length of the committed data: 8, or 4 on 32-bit kernels.
    pub commit_size: usize,
    /// Offset of the first event in a sub-buffer, in bytes.
    pub data: usize,
    /// Size of a whole sub-buffer in bytes.
    pub page: usize,
}

impl Default for PageLayout {
    /// Returns the layout of a 64-bit kernel with sub-buffers of 4,096 bytes.
    fn default() -> Self {
        Self {
            commit_size: 8,
            data: 16,
            page: 4096,
        }
    }
}

impl PageLayout {
    /// Parses the text of `events/header_page`. Fails if its fields differ from those of all known kernels.
    pub fn parse(text: &str) -> Result<Self, ProbeError> {
        let what = "events/header_page";
        let fields: Vec<Field> = text
            .lines()
            .filter_map(|line| parse_field(line.trim_start().strip_prefix("field:")?))
            .collect();
        let find = |name: &str| {
            fields
                .iter()
                .find(|field| field.name == name)
                .ok_or_else(|| ProbeError::malformed(what, format!("it has no field {name}")))
        };
        let (time, commit, data) = (find("timestamp")?, find("commit")?, find("data")?);
        let layout = Self {
            commit_size: commit.size,
            data: data.offset,
            page: data.offset + data.size,
        };
        let usual = (time.offset, time.size) == (0, 8)
            && commit.offset == 8
            && matches!(commit.size, 4 | 8)
            && layout.data >= 8 + commit.size;
        if usual {
            Ok(layout)
        } else {
            Err(ProbeError::malformed(
                what,
                "its fields do not lie as on any known kernel",
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MARK_VICTIM: &str = "name: mark_victim
ID: 609
format:
	field:unsigned short common_type;	offset:0;	size:2;	signed:0;
	field:int common_pid;	offset:4;	size:4;	signed:1;

	field:__data_loc char[] comm;	offset:12;	size:4;	signed:0;
	field:char rwbs[10];	offset:16;	size:10;	signed:0;
	field:struct shrinker * shr;	offset:32;	size:8;	signed:0;
	field:enum zone_type highest_zoneidx;	offset:40;	size:4;	signed:0;
	field:__rel_loc u8[] tail;	offset:44;	size:4;	signed:0;
	field:a_type_of_tomorrow odd;	offset:48;	size:3;

print fmt: \"field:int not_a_field; offset:0; size:4;\", REC->pid
";

    #[test]
    fn every_shape_of_field_is_understood_and_the_print_format_left_alone() {
        let format = EventFormat::parse("oom", MARK_VICTIM).unwrap();
        assert_eq!((format.name.as_str(), format.id), ("mark_victim", 609));
        assert_eq!(format.fields.len(), 8);
        let shape = |name: &str| format.field(name).unwrap().shape;
        assert_eq!(shape("comm"), FieldShape::DataLocation);
        assert_eq!(shape("tail"), FieldShape::RelativeLocation);
        assert_eq!(shape("rwbs"), FieldShape::Array(10));
        assert_eq!(format.field("shr").unwrap().kind, "struct shrinker *");
        assert!(format.field("common_pid").unwrap().signed);
        assert_eq!(format.field("odd").unwrap().size, 3);
        assert!(format.field("not_a_field").is_none());
    }

    #[test]
    fn a_format_without_number_or_with_an_absurd_one_is_refused() {
        assert!(EventFormat::parse("x", "name: a\n").is_err());
        assert!(EventFormat::parse("x", "name: a\nID: 70000\n").is_err());
        let absurd = "name: a\nID: 3\n\tfield:int x;\toffset:99999999999;\tsize:4;\n";
        assert!(EventFormat::parse("x", absurd).is_err());
    }

    #[test]
    fn the_page_layout_is_read_from_the_kernels_own_words() {
        let text = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n\tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n\tfield: char data;\toffset:16;\tsize:4080;\tsigned:0;\n";
        assert_eq!(PageLayout::parse(text).unwrap(), PageLayout::default());
        assert!(PageLayout::parse("\tfield: u64 timestamp;\toffset:0;\tsize:8;\n").is_err());
    }
}
