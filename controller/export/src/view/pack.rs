//! Numbers packed for the page: as few bytes as they need, as text that means nothing to HTML.

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// The greatest number that a script counts exactly.
pub const NUMBER_MAX: u64 = (1 << 53) - 1;

/// Appends a number: seven bits a byte, the low ones first, with the high bit where more follow. Larger ones than
/// [`NUMBER_MAX`] become that.
pub fn number(into: &mut Vec<u8>, value: u64) {
    let mut rest = value.min(NUMBER_MAX);
    while rest >= 0x80 {
        into.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    into.push(rest as u8);
}

/// Bytes as base64 (RFC 4648).
pub fn base64(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let byte = |at: usize| u32::from(*chunk.get(at).unwrap_or(&0));
        let group = byte(0) << 16 | byte(1) << 8 | byte(2);
        for place in 0..4 {
            let sign = ALPHABET[(group >> (18 - 6 * place)) as usize & 63];
            let missing = place as usize > chunk.len();
            text.push(if missing { '=' } else { sign.into() });
        }
    }
    text
}

/// A JSON text that cannot end the element that it stands in, nor begin another.
pub fn json(value: &serde_json::Value) -> String {
    let mut safe = String::new();
    for c in value.to_string().chars() {
        match c {
            // Only in strings, where these mean the same.
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                safe += &format!("\\u{:04x}", u32::from(c))
            }
            c => safe.push(c),
        }
    }
    safe
}

/// Text between the tags of HTML, or in an attribute's quotes.
pub fn html(text: &str) -> String {
    let mut safe = String::new();
    for c in text.chars() {
        match c {
            '<' => safe += "&lt;",
            '>' => safe += "&gt;",
            '&' => safe += "&amp;",
            '"' => safe += "&quot;",
            '\'' => safe += "&#39;",
            c => safe.push(c),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn numbers_take_a_byte_for_each_seven_bits() {
        let packed = |value| {
            let mut bytes = Vec::new();
            number(&mut bytes, value);
            bytes
        };
        assert_eq!(packed(0), [0]);
        assert_eq!(packed(127), [127]);
        assert_eq!(packed(128), [0x80, 1]);
        assert_eq!(packed(300), [0xAC, 2]);
        assert_eq!(packed(u64::MAX), packed(NUMBER_MAX));
        assert_eq!(packed(NUMBER_MAX).len(), 8);
    }

    #[test]
    fn base64_is_that_of_the_rfc() {
        let cases = [
            "", "Zg==", "Zm8=", "Zm9v", "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy",
        ];
        for (length, text) in cases.into_iter().enumerate() {
            assert_eq!(base64(&b"foobar"[..length]), text);
        }
        assert_eq!(base64(&[0xFB, 0xFF, 0xBF]), "+/+/");
    }

    #[test]
    fn no_text_leaves_the_element_that_it_stands_in() {
        let name = "</script><!--<img src=x onerror='a()'>&\u{2028}\"\\";
        let text = json(&json!({ "name": name }));
        assert!(!text.contains(['<', '>', '&', '\u{2028}']), "{text}");
        let back: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(back["name"], name);
        let text = html(name);
        assert!(!text.contains(['<', '>', '"', '\'']), "{text}");
        assert!(text.starts_with("&lt;/script&gt;") && text.contains("&amp;\u{2028}&quot;"));
    }
}
