//! Numbers as the stock parser prints them, which is as Python does.

use std::fmt::Write;

/// Appends a float as Python's `repr` prints it: the shortest text that is read as the same number, `25.0` with its `.0`.
/// Of two that are as short and as near, Python takes the even one and Rust the larger: `...000.2` for a quarter.
pub fn push_float(text: &mut String, number: f64) {
    // Neither is in JSON; both come of ticks of an absurd length alone.
    let number = match number.is_finite() {
        true => number,
        false => f64::MAX.copysign(number),
    };
    /// Fewer digits are all that the number has.
    const DIGITS: usize = 16;
    let begin = text.len();
    // A string takes everything.
    let _ = write!(text, "{number:?}");
    let printed = &text[begin..];
    if printed.len() > DIGITS && !printed.contains('e') {
        let decimals = printed.len() - 1 - printed.find('.').unwrap_or(printed.len() - 1);
        text.truncate(begin);
        let _ = write!(text, "{number:.decimals$}");
    }
    // Where an exponent begins is the same; Python gives it a sign and two digits.
    if let Some(at) = text[begin..].find('e') {
        let exponent = text.split_off(begin + at + 1);
        let (sign, digits) = match exponent.strip_prefix('-') {
            Some(digits) => ('-', digits),
            None => ('+', exponent.as_str()),
        };
        let _ = write!(text, "{sign}{digits:0>2}");
    }
}

/// The same as a text of its own.
pub fn float(number: f64) -> String {
    let mut text = String::new();
    push_float(&mut text, number);
    text
}

/// Rounded to three decimals as Python's `round` does: by the decimal expansion, half to even.
pub fn round3(number: f64) -> f64 {
    format!("{number:.3}").parse().unwrap_or(number)
}

/// Appends a time in ns as us with three decimals.
pub fn push_us(text: &mut String, ns: i128) {
    let sign = if ns < 0 { "-" } else { "" };
    let (whole, part) = (ns.unsigned_abs() / 1000, ns.unsigned_abs() % 1000);
    // Most fit, and are divided and printed in a fraction of the time.
    let _ = match u64::try_from(whole) {
        Ok(whole) => write!(text, "{sign}{whole}.{part:03}"),
        Err(_) => write!(text, "{sign}{whole}.{part:03}"),
    };
}

/// The same as a text of its own.
pub fn us(ns: i128) -> String {
    let mut text = String::new();
    push_us(&mut text, ns);
    text
}

/// The sum of two floats, taken as the decimal numbers that Python prints of them, rounded to thousandths, half to even.
/// That many thousandths.
pub fn thousandths(a: f64, b: f64) -> i128 {
    /// Decimals that are kept on the way.
    const KEPT: u32 = 15;
    const UNIT: i128 = 10i128.pow(KEPT - 3);
    /// What a clock of an absurd rate comes to; far enough from the end for sums.
    const MOST: i128 = 10i128.pow(30);
    let (Some(a), Some(b)) = (decimal(a, KEPT as i32), decimal(b, KEPT as i32)) else {
        let sum = (a + b) * 1000.0;
        return (sum.round_ties_even() as i128).clamp(-MOST, MOST);
    };
    let sum = a + b;
    let (whole, rest) = (sum.div_euclid(UNIT), sum.rem_euclid(UNIT));
    match rest.cmp(&(UNIT / 2)) {
        std::cmp::Ordering::Less => whole,
        std::cmp::Ordering::Equal => whole + (whole & 1),
        std::cmp::Ordering::Greater => whole + 1,
    }
}

/// A float's shortest decimal text times ten to the `scale`; `None` where that is too large. What lies behind is cut off.
fn decimal(number: f64, scale: i32) -> Option<i128> {
    if !number.is_finite() || number.abs() >= 1e20 {
        return None;
    }
    // As many digits as the shortest text has, half to even.
    let shortest = format!("{number:e}");
    let digits = shortest.bytes().take_while(|byte| *byte != b'e');
    let digits = digits.filter(u8::is_ascii_digit).count();
    let text = format!("{number:.*e}", digits.saturating_sub(1));
    let (digits, exponent) = text.split_once('e')?;
    let (sign, digits) = match digits.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, digits),
    };
    let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
    let value: i128 = format!("{whole}{part}").parse().ok()?;
    let shift = exponent.parse::<i32>().ok()? - part.len() as i32 + scale;
    let value = match u32::try_from(shift) {
        Ok(up) => value.checked_mul(10i128.checked_pow(up)?)?,
        Err(_) => match 10i128.checked_pow(shift.unsigned_abs()) {
            Some(down) => value / down,
            None => 0,
        },
    };
    Some(sign * value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_are_printed_as_python_prints_them() {
        for (number, text) in [
            (25.0, "25.0"),
            (0.0, "0.0"),
            (-0.031, "-0.031"),
            (228.571, "228.571"),
            (1_700_000_000_010_600.0, "1700000000010600.0"),
            (1_780_645_871_872_000.2, "1780645871872000.2"),
            (1_780_645_871_872_000.8, "1780645871872000.8"),
            (-1_780_645_871_872_000.2, "-1780645871872000.2"),
            (1e16, "1e+16"),
            (1.25e22, "1.25e+22"),
            (0.0001, "0.0001"),
            (0.00001, "1e-05"),
            (0.09765625, "0.09765625"),
            (f64::INFINITY, "1.7976931348623157e+308"),
        ] {
            assert_eq!(float(number), text);
        }
    }

    #[test]
    fn rounding_goes_by_the_decimal_expansion_and_half_to_even() {
        assert_eq!(round3(0.0625), 0.062);
        assert_eq!(round3(0.1875), 0.188);
        assert_eq!(round3(2.0005), 2.001); // a little more than that
        assert_eq!(round3(-1.0006), -1.001);
        assert_eq!(round3(1e300), 1e300);
    }

    #[test]
    fn microseconds_have_three_decimals() {
        assert_eq!(us(1_700_000_000_010_260_007), "1700000000010260.007");
        assert_eq!(us(-1), "-0.001");
        assert_eq!(us(0), "0.000");
        assert_eq!(
            us(i128::from(u64::MAX) * 1000 + 5),
            "18446744073709551615.005"
        );
    }

    #[test]
    fn decimal_sums_are_rounded_once() {
        assert_eq!(thousandths(10.0, 0.25), 10_250);
        assert_eq!(thousandths(0.0005, 0.0), 0);
        assert_eq!(thousandths(0.0015, 0.0), 2);
        assert_eq!(thousandths(1e-9, 1.0), 1_000);
        assert_eq!(thousandths(-0.0025, 0.0), -2);
        assert_eq!(
            thousandths(876_117_208_663.77, 780_645_871_872_000.2),
            781_521_989_080_663_970
        );
        // Too large for decimals, and no panic.
        assert!(thousandths(1e25, 1.0) > 9 * 10i128.pow(27));
        assert_eq!(thousandths(f64::INFINITY, 1.0), 10i128.pow(30));
    }
}
