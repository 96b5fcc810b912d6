/// Returns whether a byte can be in the middle of a key: letters and digits of ASCII, `_` and `-`.
pub(super) fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-'
}

/// Returns the byte in front of a place, or a space at the beginning.
pub(super) fn before(bytes: &[u8], at: usize) -> u8 {
    at.checked_sub(1).map_or(b' ', |at| bytes[at])
}

/// Returns the byte at a place, or a space at the end.
pub(super) fn after(bytes: &[u8], at: usize) -> u8 {
    bytes.get(at).copied().unwrap_or(b' ')
}

/// Returns how many bytes from a place on satisfy a condition; looks at so many at most.
pub(super) fn run(bytes: &[u8], from: usize, max: usize, is_in: impl Fn(u8) -> bool) -> usize {
    bytes[from.min(bytes.len())..].iter().take(max).take_while(|byte| is_in(**byte)).count()
}

/// Returns how many bytes in front of a place satisfy a condition; looks at so many at most.
pub(super) fn run_back(bytes: &[u8], until: usize, max: usize, is_in: impl Fn(u8) -> bool) -> usize {
    bytes[..until].iter().rev().take(max).take_while(|byte| is_in(**byte)).count()
}

/// Returns where a word begins whose first letters may belong to an escape in front of it, such as `\n` or `%3D`.
#[inline]
pub(super) fn unescaped(bytes: &[u8], start: usize) -> usize {
    match before(bytes, start) {
        b'\\' | b'%' | b'[' => start + escape(bytes, start),
        _ => start,
    }
}

/// How many bytes from a place on belong to an escape in front of it.
fn escape(bytes: &[u8], start: usize) -> usize {
    let is_hex =
        |range: std::ops::Range<usize>| bytes.get(range).is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit));
    match (before(bytes, start), after(bytes, start)) {
        (b'\\', b'n' | b'r' | b't' | b'b' | b'f') => 1,
        (b'\\', b'u') if is_hex(start + 1..start + 5) => 5,
        (b'\\', b'x') if is_hex(start + 1..start + 3) => 3,
        (b'%', _) if is_hex(start..start + 2) => 2,
        (b'[', _) if start >= 2 && bytes[start - 2] == 0x1b => {
            let digits = run(bytes, start, ESCAPE_BYTES_MAX, |it| it.is_ascii_digit());
            digits + usize::from(after(bytes, start + digits) == b'm')
        }
        _ => 0,
    }
}

/// How many digits of a terminal's escape are looked at.
const ESCAPE_BYTES_MAX: usize = 4;
