//! The interval of a mean.

/// Half of the 95 % interval of a mean; `None` with fewer than three values.
pub(crate) fn half_width(values: &[f64]) -> Option<f64> {
    if values.len() < 3 {
        return None;
    }
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1.0);
    Some(student_t_975(values.len() - 1) * (variance / n).sqrt())
}

/// The 97.5 % point of Student's t: tabulated to 10 degrees of freedom, then by Cornish–Fisher
/// (Abramowitz and Stegun 26.7.5), which is within 0.1 % there.
fn student_t_975(degrees: usize) -> f64 {
    const TABLE: [f64; 10] = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228];
    if let Some(t) = degrees.checked_sub(1).and_then(|i| TABLE.get(i)) {
        return *t;
    }
    let (z, v) = (1.959_964f64, degrees as f64);
    z + (z.powi(3) + z) / (4.0 * v) + (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / (96.0 * v * v)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_use_students_t() {
        // Five values 8..12: mean 10, s = 1.581, t(4) = 2.776: half width 1.963.
        let half = half_width(&[8.0, 9.0, 10.0, 11.0, 12.0]).unwrap();
        assert!((half - 1.963).abs() < 0.001, "{half}");
        assert_eq!(half_width(&[1.0, 2.0]), None);
        for (degrees, t) in [(1, 12.706), (10, 2.228), (11, 2.201), (30, 2.042), (1000, 1.962)] {
            assert!((student_t_975(degrees) - t).abs() < 0.003, "{degrees}: {}", student_t_975(degrees));
        }
    }
}
