//! Precompiled accessors for the fields of an event.

use super::format::{EventFormat, Field, FieldShape};

/// Reads one number from the data of an event. Offset, size and sign are determined once, when the accessor is created.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FieldAccess {
    offset: u32,
    size: u8,
    signed: bool,
}

impl FieldAccess {
    /// Returns an accessor for a scalar of 1, 2, 4 or 8 bytes; `None` for any other field.
    pub fn new(field: &Field) -> Option<Self> {
        let scalar = field.shape == FieldShape::Scalar && matches!(field.size, 1 | 2 | 4 | 8);
        scalar.then(|| {
            Some(Self {
                offset: u32::try_from(field.offset).ok()?,
                size: u8::try_from(field.size).ok()?,
                signed: field.signed,
            })
        })?
    }

    /// Returns an accessor for the first field in `names` that the event has; `None` if it has none of them. Kernels
    /// rename fields, so a field may need several names.
    pub fn first_of(format: &EventFormat, names: &[&str]) -> Option<Self> {
        names
            .iter()
            .find_map(|name| format.field(name).and_then(Self::new))
    }

    /// Returns the number as an unsigned value; a signed field is sign-extended. `None` if the data is too short.
    #[inline]
    pub fn get(self, data: &[u8]) -> Option<u64> {
        let at = self.offset as usize;
        Some(match (self.size, self.signed) {
            (8, _) => u64::from_le_bytes(word(data, at)?),
            (4, false) => u64::from(u32::from_le_bytes(word(data, at)?)),
            (4, true) => i64::from(i32::from_le_bytes(word(data, at)?)).cast_unsigned(),
            (2, false) => u64::from(u16::from_le_bytes(word(data, at)?)),
            (2, true) => i64::from(i16::from_le_bytes(word(data, at)?)).cast_unsigned(),
            (_, false) => u64::from(*data.get(at)?),
            (_, true) => i64::from(data.get(at)?.cast_signed()).cast_unsigned(),
        })
    }

    /// Returns the number as a signed value. `None` if the data is too short.
    #[inline]
    pub fn get_signed(self, data: &[u8]) -> Option<i64> {
        self.get(data).map(u64::cast_signed)
    }
}

/// Returns the `N` bytes at offset `at`; `None` if the data is too short.
#[inline]
fn word<const N: usize>(data: &[u8], at: usize) -> Option<[u8; N]> {
    data.get(at..)?.first_chunk().copied()
}

/// Reads a string field (a `char` array, or one of dynamic length) from the data of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextAccess {
    offset: usize,
    size: usize,
    shape: FieldShape,
}

impl TextAccess {
    /// Returns an accessor for an array or a dynamic field; `None` for a scalar.
    pub fn new(field: &Field) -> Option<Self> {
        (field.shape != FieldShape::Scalar).then_some(Self {
            offset: field.offset,
            size: field.size,
            shape: field.shape,
        })
    }

    /// Returns the bytes of the string up to the first zero; `None` if the string lies outside of the data.
    pub fn get(self, data: &[u8]) -> Option<&[u8]> {
        let (start, length) = match self.shape {
            FieldShape::Scalar | FieldShape::Array(_) => (self.offset, self.size),
            FieldShape::DataLocation | FieldShape::RelativeLocation => {
                let place = u32::from_le_bytes(word(data, self.offset)?);
                let base = match self.shape {
                    FieldShape::RelativeLocation => self.offset + 4,
                    _ => 0,
                };
                let position = usize::from(u16::try_from(place & 0xffff).ok()?);
                let length = usize::from(u16::try_from(place >> 16).ok()?);
                (base + position, length)
            }
        };
        let bytes = data.get(start..start.checked_add(length)?)?;
        let end = bytes.iter().position(|&b| b == 0).unwrap_or(bytes.len());
        Some(&bytes[..end])
    }
}

/// Maps event IDs to values, stored as an array indexed by ID.
#[derive(Debug, Clone)]
pub struct IdTable<T> {
    slots: Vec<Option<T>>,
}

impl<T> Default for IdTable<T> {
    fn default() -> Self {
        Self { slots: Vec::new() }
    }
}

impl<T> IdTable<T> {
    /// Sets the value for an event ID.
    pub fn insert(&mut self, id: u16, value: T) {
        let at = usize::from(id);
        if self.slots.len() <= at {
            self.slots.resize_with(at + 1, || None);
        }
        self.slots[at] = Some(value);
    }

    /// Returns the value for an event ID; `None` if it was not set.
    #[inline]
    pub fn get(&self, id: u16) -> Option<&T> {
        self.slots.get(usize::from(id))?.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(offset: usize, size: usize, signed: bool, shape: FieldShape) -> Field {
        Field {
            name: "x".into(),
            kind: "t".into(),
            offset,
            size,
            signed,
            shape,
        }
    }

    #[test]
    fn numbers_of_every_size_and_sign_are_read() {
        let data = [0xff, 0xfe, 0xff, 0xff, 0xff, 0, 0, 0, 0];
        let get = |offset, size, signed| {
            FieldAccess::new(&field(offset, size, signed, FieldShape::Scalar))
                .unwrap()
                .get_signed(&data)
        };
        assert_eq!(get(0, 1, true), Some(-1));
        assert_eq!(get(0, 1, false), Some(255));
        assert_eq!(get(1, 2, true), Some(-2));
        assert_eq!(get(1, 4, true), Some(-2));
        assert_eq!(get(1, 4, false), Some(0xffff_fffe));
        assert_eq!(get(1, 8, false), Some(0xffff_fffe));
        assert_eq!(get(2, 8, false), None);
        assert_eq!(get(9, 1, false), None);
    }

    #[test]
    fn a_scalar_of_odd_size_has_no_accessor() {
        assert!(FieldAccess::new(&field(0, 3, false, FieldShape::Scalar)).is_none());
        assert!(FieldAccess::new(&field(0, 8, false, FieldShape::Array(8))).is_none());
    }

    #[test]
    fn dynamic_text_is_found_absolutely_and_relatively_and_never_outside() {
        // The word at offset 0 means: position 8, length 4.
        let mut data = vec![8, 0, 4, 0, 0, 0, 0, 0];
        data.extend(b"ab\0c");
        let absolute = TextAccess::new(&field(0, 4, false, FieldShape::DataLocation)).unwrap();
        assert_eq!(absolute.get(&data), Some(&b"ab"[..]));
        data[0] = 4;
        let relative = TextAccess::new(&field(0, 4, false, FieldShape::RelativeLocation)).unwrap();
        assert_eq!(relative.get(&data), Some(&b"ab"[..]));
        data[2] = 200;
        assert_eq!(relative.get(&data), None);
    }
}
