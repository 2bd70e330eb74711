//! The normal distribution and Student's distribution, as far as the tests need them.

use std::f64::consts::{PI, SQRT_2};

/// Returns the probability that a standard normal variable is at most `z`.
pub fn cdf(z: f64) -> f64 {
    0.5 * libm::erfc(-z / SQRT_2)
}

/// Returns the probability that a standard normal variable has an absolute value of at least `|z|`.
pub fn two_sided(z: f64) -> f64 {
    libm::erfc(z.abs() / SQRT_2)
}

/// Returns the density of the standard normal distribution.
pub fn density(z: f64) -> f64 {
    libm::exp(-0.5 * z * z) / (2.0 * PI).sqrt()
}

/// Returns the value below which a standard normal variable falls with probability `p`; infinite at 0 and 1.
///
/// Acklam's rational approximation (relative error 1.2e-9), refined by Halley steps with `erfc` to full precision.
/// Quantiles above the median are mirrored, so that no precision is lost near 1.
pub fn quantile(p: f64) -> f64 {
    if p.is_nan() || p <= 0.0 {
        return f64::NEG_INFINITY;
    }
    if p >= 1.0 {
        return f64::INFINITY;
    }
    if p > 0.5 {
        return -quantile(1.0 - p);
    }
    let mut z = approximate_lower_quantile(p);
    for _ in 0..2 {
        let error = (cdf(z) - p) / density(z);
        z -= error / (1.0 + 0.5 * z * error);
    }
    z
}

/// Peter Acklam, "An algorithm for computing the inverse normal cumulative distribution function" (2003), for p ≤ 0.5.
fn approximate_lower_quantile(p: f64) -> f64 {
    const A: [f64; 6] = [
        -3.969683028665376e1,
        2.209460984245205e2,
        -2.759285104469687e2,
        1.38357751867269e2,
        -3.066479806614716e1,
        2.506628277459239,
    ];
    const B: [f64; 5] = [
        -5.447609879822406e1,
        1.615858368580409e2,
        -1.556989798598866e2,
        6.680131188771972e1,
        -1.328068155288572e1,
    ];
    const C: [f64; 6] = [
        -7.784894002430293e-3,
        -3.223964580411365e-1,
        -2.400758277161838,
        -2.549732539343734,
        4.374664141464968,
        2.938163982698783,
    ];
    const D: [f64; 4] = [
        7.784695709041462e-3,
        3.224671290700398e-1,
        2.445134137142996,
        3.754408661907416,
    ];
    let polynomial = |coefficients: &[f64], x: f64| {
        coefficients
            .iter()
            .fold(0.0, |sum, coefficient| sum * x + coefficient)
    };
    if p < 0.02425 {
        let q = (-2.0 * libm::log(p)).sqrt();
        polynomial(&C, q) / (polynomial(&D, q) * q + 1.0)
    } else {
        let q = p - 0.5;
        let r = q * q;
        polynomial(&A, r) * q / (polynomial(&B, r) * r + 1.0)
    }
}

/// Returns the probability that a Student variable with `freedom` degrees is at most `t`, through the incomplete beta
/// function.
pub fn student_cdf(t: f64, freedom: f64) -> f64 {
    let tail = 0.5 * incomplete_beta(freedom / (freedom + t * t), 0.5 * freedom, 0.5);
    if t > 0.0 { 1.0 - tail } else { tail }
}

/// Returns the value below which a Student variable with `freedom` degrees falls with probability `p`.
pub fn student_quantile(p: f64, freedom: f64) -> f64 {
    if p > 0.5 {
        return -student_quantile(1.0 - p, freedom);
    }
    let (mut low, mut high) = (-1.0, 0.0);
    while student_cdf(low, freedom) > p && low > -1e300 {
        low *= 2.0;
    }
    // Bisection: 200 halvings exhaust the precision for any initial bracket.
    for _ in 0..200 {
        let middle = 0.5 * (low + high);
        if student_cdf(middle, freedom) > p {
            high = middle;
        } else {
            low = middle;
        }
    }
    0.5 * (low + high)
}

/// Regularised incomplete beta function by Lentz's continued fraction (Numerical Recipes, 3rd edition, section 6.4).
fn incomplete_beta(x: f64, a: f64, b: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if x >= 1.0 {
        return 1.0;
    }
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - incomplete_beta(1.0 - x, b, a);
    }
    let front = libm::exp(
        libm::lgamma(a + b) - libm::lgamma(a) - libm::lgamma(b)
            + a * libm::log(x)
            + b * libm::log1p(-x),
    );
    let tiny = 1e-300;
    let guard = |value: f64| if value.abs() < tiny { tiny } else { value };
    let mut upper = 1.0;
    let mut lower = 1.0 / guard(1.0 - (a + b) * x / (a + 1.0));
    let mut fraction = lower;
    for step in 1..500 {
        let step = f64::from(step);
        let even = step * (b - step) * x / ((a + 2.0 * step - 1.0) * (a + 2.0 * step));
        let odd = -(a + step) * (a + b + step) * x / ((a + 2.0 * step) * (a + 2.0 * step + 1.0));
        let mut change = 1.0;
        for term in [even, odd] {
            lower = 1.0 / guard(1.0 + term * lower);
            upper = guard(1.0 + term / upper);
            change = upper * lower;
            fraction *= change;
        }
        if (change - 1.0).abs() < 1e-16 {
            break;
        }
    }
    front * fraction / a
}
