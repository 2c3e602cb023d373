//! Samples of one quantity: median and spread.

use serde_json::{Value, json};

/// Samples in the order in which they were taken.
#[derive(Clone, Debug, Default)]
pub struct Samples(Vec<f64>);

impl Samples {
    /// Adds one.
    pub fn add(&mut self, sample: f64) {
        self.0.push(sample);
    }

    /// The value below which `share` of them lie.
    pub fn quantile(&self, share: f64) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        let Some(last) = sorted.len().checked_sub(1) else {
            return f64::NAN;
        };
        sorted[(share * last as f64).round() as usize]
    }

    /// The middle one.
    pub fn median(&self) -> f64 {
        self.quantile(0.5)
    }

    /// Sample by sample, which were taken in the same round.
    pub fn zip(&self, other: &Samples, f: impl Fn(f64, f64) -> f64) -> Samples {
        Samples(
            self.0
                .iter()
                .zip(&other.0)
                .map(|(&a, &b)| f(a, b))
                .collect(),
        )
    }

    /// "median (p10..p90)".
    pub fn text(&self) -> String {
        if self.0.is_empty() {
            return "-".to_owned();
        }
        let digits = if self.median() >= 100.0 { 0 } else { 1 };
        if self.0.len() == 1 {
            return format!("{:.digits$}", self.median());
        }
        format!(
            "{:.digits$} ({:.digits$}..{:.digits$})",
            self.median(),
            self.quantile(0.1),
            self.quantile(0.9)
        )
    }

    /// For the raw results.
    pub fn json(&self) -> Value {
        let round = |x: f64| (x * 1000.0).round() / 1000.0;
        json!({
            "median": round(self.median()),
            "p10": round(self.quantile(0.1)),
            "p90": round(self.quantile(0.9)),
            "samples": self.0.iter().map(|&x| round(x)).collect::<Vec<_>>(),
        })
    }
}
