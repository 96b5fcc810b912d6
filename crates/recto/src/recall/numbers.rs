//! Logarithms that come out the same on every machine: additions, multiplications and divisions alone, which are exact
//! to the last bit everywhere, unlike the functions of a platform's library.

const LN_2: f64 = std::f64::consts::LN_2;
const SQRT_2: f64 = std::f64::consts::SQRT_2;
/// How many terms of a series are summed; more change nothing.
const TERMS: u32 = 13;
/// Beyond this, e to the power of it is taken for nothing.
const POWER_MAX: f64 = 700.0;

/// Returns the natural logarithm of a number above 0; of anything else that of the smallest such number.
pub(super) fn ln(x: f64) -> f64 {
    let x = if x > f64::MIN_POSITIVE { x } else { f64::MIN_POSITIVE };
    let bits = x.to_bits();
    let exponent = ((bits >> 52) & 0x7ff) as i64 - 1023;
    let fraction = f64::from_bits((bits & 0x000f_ffff_ffff_ffff) | (1023 << 52));
    let (exponent, fraction) = if fraction > SQRT_2 { (exponent + 1, fraction / 2.0) } else { (exponent, fraction) };
    let ratio = (fraction - 1.0) / (fraction + 1.0);
    let square = ratio * ratio;
    let mut sum = 0.0;
    for term in (0..TERMS).rev() {
        sum = sum * square + 1.0 / f64::from(2 * term + 1);
    }
    exponent as f64 * LN_2 + 2.0 * ratio * sum
}

/// Returns e to the power of a number that is not above 0.
fn exp_below(x: f64) -> f64 {
    if x < -POWER_MAX {
        return 0.0;
    }
    let halvings = (-x / LN_2).floor();
    let rest = x + halvings * LN_2;
    let mut sum = 1.0;
    for term in (1..=TERMS).rev() {
        sum = 1.0 + sum * rest / f64::from(term);
    }
    // A power of two is a number whose fraction is nothing.
    sum * f64::from_bits(((1023 - halvings as i64) as u64) << 52)
}

/// Returns the logarithm of the chance whose odds' logarithm this is.
pub(super) fn ln_chance(odds: f64) -> f64 {
    if odds >= 0.0 { -ln(1.0 + exp_below(-odds)) } else { odds - ln(1.0 + exp_below(odds)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logarithms_are_those_of_the_library_to_twelve_digits() {
        for x in [1e-300, 1e-9, 0.3, 0.75, 1.0, 1.42, 1.5, 2.0, 10.0, 12_345.678, 1e300] {
            assert!((ln(x) - x.ln()).abs() <= 1e-12 * x.ln().abs().max(1.0), "{x}: {} {}", ln(x), x.ln());
        }
        for x in [-745.0, -50.0, -9.2, -0.7, -1e-9, 0.0, 0.5, 3.0, 40.0] {
            let expected = -(1.0 + f64::exp(-x)).ln();
            assert!((ln_chance(x) - expected).abs() <= 1e-12 * expected.abs().max(1.0), "{x}");
        }
        assert!(ln(0.0).is_finite() && ln(-1.0).is_finite() && ln(f64::NAN).is_finite());
    }
}
