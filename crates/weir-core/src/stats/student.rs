//! The normal distribution and Student's t, as far as intervals need them.

/// The normal distribution function (Abramowitz and Stegun 26.2.17, error below 7.5e-8).
pub fn normal_below(x: f64) -> f64 {
    let t = 1.0 / (1.0 + 0.231_641_9 * x.abs());
    let polynomial = [1.330_274_429, -1.821_255_978, 1.781_477_937, -0.356_563_782, 0.319_381_530]
        .iter()
        .fold(0.0, |sum, c| sum * t + c)
        * t;
    let beyond = (-x * x / 2.0).exp() / std::f64::consts::TAU.sqrt() * polynomial;
    if x <= 0.0 { beyond } else { 1.0 - beyond }
}

/// Where the normal distribution function is `p`, within ±6.
pub fn normal_quantile(p: f64) -> f64 {
    bisect(-6.0, 6.0, |x| normal_below(x) < p)
}

/// The chance that |t| exceeds `t` with `freedom` degrees of freedom.
pub fn student_beyond(t: f64, freedom: f64) -> f64 {
    incomplete_beta(freedom / (freedom + t * t), freedom / 2.0, 0.5)
}

/// What |t| exceeds with chance `alpha`.
pub fn student_quantile(alpha: f64, freedom: f64) -> f64 {
    // In logarithms: with one degree of freedom the answer may be thousands.
    bisect(-20.0, 20.0, |log| student_beyond(log.exp(), freedom) > alpha).exp()
}

/// Where `below` turns from true to false between the two ends.
fn bisect(mut low: f64, mut high: f64, below: impl Fn(f64) -> bool) -> f64 {
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        if below(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    (low + high) / 2.0
}

/// The regularised incomplete beta function (Abramowitz and Stegun 26.5.8, its continued fraction by Lentz's method).
fn incomplete_beta(x: f64, a: f64, b: f64) -> f64 {
    if x <= 0.0 || x >= 1.0 {
        return x.clamp(0.0, 1.0);
    }
    // The fraction converges fast on this side only.
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - incomplete_beta(1.0 - x, b, a);
    }
    let front = a * x.ln() + b * (1.0 - x).ln() + ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b);
    front.exp() / (a * fraction(x, a, b))
}

fn fraction(x: f64, a: f64, b: f64) -> f64 {
    const TINY: f64 = 1e-300;
    let not_zero = |v: f64| if v.abs() < TINY { TINY } else { v };
    let term = |i: u32| {
        let m = f64::from(i / 2);
        if i.is_multiple_of(2) {
            m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m))
        } else {
            -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0))
        }
    };
    let (mut value, mut c, mut d) = (1.0, 1.0, 0.0);
    for i in 1..500 {
        d = 1.0 / not_zero(1.0 + term(i) * d);
        c = not_zero(1.0 + term(i) / c);
        value *= c * d;
        if (c * d - 1.0).abs() < 1e-13 {
            break;
        }
    }
    value
}

/// Lanczos' approximation (g = 5, six terms), relative error below 2e-10.
fn ln_gamma(x: f64) -> f64 {
    const TERMS: [f64; 6] = [
        76.180_091_729_471_46,
        -86.505_320_329_416_77,
        24.014_098_240_830_91,
        -1.231_739_572_450_155,
        0.120_865_097_386_617_9e-2,
        -0.539_523_938_495_3e-5,
    ];
    let sum =
        TERMS.iter().enumerate().fold(1.000_000_000_190_015, |sum, (i, c)| sum + c / (x + 1.0 + i as f64));
    (x + 0.5) * (x + 5.5).ln() - (x + 5.5) + (std::f64::consts::TAU.sqrt() * sum / x).ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_in_the_tables() {
        for (freedom, alpha, t) in [
            (1.0, 0.05, 12.706),
            (2.0, 0.05, 4.303),
            (4.0, 0.05, 2.776),
            (4.0, 0.001, 8.610),
            (9.0, 0.05, 2.262),
            (9.0, 0.005, 3.690),
            (29.0, 0.05, 2.045),
            (120.0, 0.05, 1.980),
            (1e6, 0.05, 1.960),
        ] {
            let found = student_quantile(alpha, freedom);
            assert!((found / t - 1.0).abs() < 2.5e-4, "{freedom} {alpha}: {found}");
            assert!((student_beyond(t, freedom) / alpha - 1.0).abs() < 2e-3, "{freedom} {alpha}");
        }
        for (x, p) in
            [(-1.959_964, 0.025), (-1.0, 0.158_655), (-3.0, 0.001_350), (0.0, 0.5), (2.0, 0.977_250)]
        {
            assert!((normal_below(x) - p).abs() < 1e-6, "{x}: {}", normal_below(x));
            assert!((normal_quantile(p) - x).abs() < 1e-3, "{p}: {}", normal_quantile(p));
        }
    }
}
