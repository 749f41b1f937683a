//! Reading goals.

use std::str::FromStr;

use crate::goal::{Base, Bound, Goal, Limit};
use crate::measures::Metric;
use weir_core::units::{Bytes, Nanos};

const SHAPE: &str = "write `max rate`, `min p99`, `max bulk with p99 <= 10ms`, or `max rate with bulk >= 85% of found keep p99 within 10%`";

const FIGURES: [&str; 10] =
    ["rate", "mean", "p50", "p95", "p99", "p99.9", "max", "submit-p95", "bulk", "device"];

/// A text that is no goal.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("goal `{text}`: {why}; {hint}")]
pub struct BadGoal {
    /// What was typed.
    pub text: String,
    /// What is wrong with it.
    pub why: String,
    /// What would be right.
    pub hint: String,
}

/// What is wrong, and what would be right.
type Complaint = (String, String);

impl FromStr for Goal {
    type Err = BadGoal;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let bad = |(why, hint): Complaint| BadGoal { text: text.trim().to_string(), why, hint };
        let words = words(text);
        Parser { words: &words, at: 0, goal: Goal::default() }.goal().map_err(bad)
    }
}

/// The complaint about a figure that nobody measures.
pub fn unknown_figure(goal: &Goal, name: &str, named: &[&str]) -> BadGoal {
    let near = FIGURES.iter().chain(named).map(|known| (distance(name, known), known));
    let hint = match near.min() {
        Some((distance, known)) if distance <= 2 => format!("did you mean `{known}`?"),
        _ if named.is_empty() => format!("there are {}", FIGURES.join(", ")),
        _ => format!("there are {}, and of the command {}", FIGURES.join(", "), named.join(", ")),
    };
    BadGoal { text: goal.to_string(), why: format!("nothing measures a figure `{name}`"), hint }
}

/// Letters to insert, remove or replace on the way from one word to another.
fn distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (i, c) in from.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, d) in to.iter().enumerate() {
            let replaced = diagonal + usize::from(c != *d);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[to.len()]
}

/// Names, numbers with their units, and signs. A `-` within a name belongs to it (`submit-p95`).
fn words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let end = match first {
            '<' | '>' => 1 + usize::from(rest[1..].starts_with('=')),
            '+' | '-' | '*' | ',' | '%' => 1,
            _ => rest
                .find(|c: char| c.is_whitespace() || "<>=+*,%".contains(c))
                .unwrap_or(rest.len())
                .max(first.len_utf8()),
        };
        words.push(rest[..end].to_string());
        rest = rest[end..].trim_start();
    }
    words
}

struct Parser<'a> {
    words: &'a [String],
    at: usize,
    goal: Goal,
}

impl Parser<'_> {
    fn goal(mut self) -> Result<Goal, Complaint> {
        let max = match self.next() {
            Some("max" | "maximise" | "maximize") => true,
            Some("min" | "minimise" | "minimize") => false,
            _ => return Err(("it does not begin with `max` or `min`".into(), SHAPE.into())),
        };
        self.weights(max)?;
        if self.take("with") {
            self.bound()?;
            while self.take(",") || self.take("and") {
                if self.peek() == Some("keep") {
                    break;
                }
                self.bound()?;
            }
        }
        while self.take("keep") || ((self.take(",") || self.take("and")) && self.take("keep")) {
            self.guardrail()?;
        }
        match self.peek() {
            None => Ok(self.goal),
            Some(word) => Err((format!("`{word}` is not expected there"), SHAPE.into())),
        }
    }

    fn weights(&mut self, max: bool) -> Result<(), Complaint> {
        let mut improve = if self.take("-") { !max } else { max };
        loop {
            let weight = self.weight()?;
            let metric = self.metric()?;
            self.direction(&metric, improve)?;
            if self.goal.weights.iter().any(|(known, _)| *known == metric) {
                return Err((format!("{metric} is named twice"), "give each figure one weight".into()));
            }
            self.goal.weights.push((metric, weight));
            improve = match self.peek() {
                Some("+") => max,
                Some("-") => !max,
                _ => break,
            };
            self.at += 1;
        }
        let sum: f64 = self.goal.weights.iter().map(|(_, weight)| weight).sum();
        // Weights that already sum to 1 stay as typed, to the last digit.
        if (sum - 1.0).abs() > 1e-9 {
            self.goal.weights.iter_mut().for_each(|(_, weight)| *weight /= sum);
        }
        Ok(())
    }

    /// `0.7*`, or 1 where there is none.
    fn weight(&mut self) -> Result<f64, Complaint> {
        if self.words.get(self.at + 1).map(String::as_str) != Some("*") {
            return Ok(1.0);
        }
        let word = self.next().unwrap_or_default();
        let weight = word.parse().ok().filter(|w: &f64| w.is_finite() && *w > 0.0);
        let weight = weight.ok_or_else(|| {
            (
                format!("expected a weight, got `{word}`"),
                "a weight is a number above 0, as in `max 0.7*rate + 0.3*bulk`".into(),
            )
        })?;
        self.at += 1;
        Ok(weight)
    }

    fn direction(&mut self, metric: &Metric, more: bool) -> Result<(), Complaint> {
        match (metric, more) {
            (Metric::Named(_), false) => self.goal.less.push(metric.clone()),
            _ if metric.more_is_better() == more => {}
            (_, true) => {
                let hint = format!("say `min {metric}`, or `max rate - {metric}` beside another figure");
                return Err((format!("of {metric}, less is better"), hint));
            }
            (_, false) => {
                let hint = format!("say `max {metric}`, or `min p99 - {metric}` beside another figure");
                return Err((format!("of {metric}, more is better"), hint));
            }
        }
        Ok(())
    }

    fn bound(&mut self) -> Result<(), Complaint> {
        let metric = self.metric()?;
        let at_most = match self.next() {
            Some("<=" | "<") => true,
            Some(">=" | ">") => false,
            _ => {
                let hint = format!("write `{metric} <= LIMIT` or `{metric} >= LIMIT`");
                return Err((format!("the bound on {metric} lacks its sign"), hint));
            }
        };
        let word = self.next().ok_or_else(|| {
            (
                format!("the bound on {metric} has no limit"),
                "a limit is `10ms`, `200MB/s`, `500` or `85% of idle`".to_string(),
            )
        })?;
        let word = word.to_string();
        let limit = if self.take("%") { self.share(&word)? } else { Limit::Value(value(&metric, &word)?) };
        self.goal.bounds.push(Bound { metric, at_most, limit });
        Ok(())
    }

    /// `85% of idle`, from the sign on.
    fn share(&mut self, number: &str) -> Result<Limit, Complaint> {
        let share = percentage(number)?;
        let of = match (self.take("of"), self.next()) {
            (true, Some("idle")) => Base::Idle,
            (true, Some("found" | "default" | "defaults")) => Base::Found,
            _ => {
                return Err((
                    format!("{number} % of what?"),
                    "write `of idle` (without floods) or `of found` (the baseline settings)".into(),
                ));
            }
        };
        Ok(Limit::Share { share, of })
    }

    /// `keep p99 within 10%`, from the figure on.
    fn guardrail(&mut self) -> Result<(), Complaint> {
        let metric = self.metric()?;
        let within = self.take("within");
        let number = self.next().unwrap_or_default().to_string();
        if !within || !self.take("%") {
            return Err((
                format!("how far may {metric} get worse?"),
                format!("write `keep {metric} within 10%`"),
            ));
        }
        self.goal.guardrails.push((metric, percentage(&number)?));
        Ok(())
    }

    fn metric(&mut self) -> Result<Metric, Complaint> {
        let is_name = |word: &&str| word.starts_with(|c: char| c.is_alphabetic() || c == '_');
        let word = self.peek().filter(is_name);
        let metric = word.map(|word| Metric::from(word.to_string())).ok_or_else(|| {
            let found = self.peek().map_or("the end".to_string(), |word| format!("`{word}`"));
            (format!("a figure is missing before {found}"), format!("there are {}", FIGURES.join(", ")))
        })?;
        self.at += 1;
        Ok(metric)
    }

    fn peek(&self) -> Option<&str> {
        self.words.get(self.at).map(String::as_str)
    }

    fn next(&mut self) -> Option<&str> {
        let word = self.words.get(self.at)?;
        self.at += 1;
        Some(word)
    }

    fn take(&mut self, word: &str) -> bool {
        let there = self.peek() == Some(word);
        self.at += usize::from(there);
        there
    }
}

fn percentage(number: &str) -> Result<f64, Complaint> {
    let share = number.parse().ok().filter(|n: &f64| n.is_finite() && *n >= 0.0);
    share.map(|n| n / 100.0).ok_or_else(|| {
        (
            format!("expected a percentage, got `{number}`"),
            "a percentage is a number of at least 0, \
            `85%`"
                .into(),
        )
    })
}

/// A limit in the figure's own unit.
fn value(metric: &Metric, word: &str) -> Result<f64, Complaint> {
    let plain = word.strip_suffix("/s").unwrap_or(word);
    let number = plain.parse::<f64>().ok().filter(|n| n.is_finite() && *n >= 0.0);
    let wrong = |hint: &str| (format!("expected a limit for {metric}, got `{word}`"), hint.to_string());
    match metric {
        Metric::Bulk | Metric::Device => {
            let bytes = plain.parse::<Bytes>().map_err(|_| wrong("write it as `200MB/s`"))?;
            Ok(bytes.0 as f64)
        }
        metric if metric.is_latency() => {
            let with_unit = number.is_none().then(|| word.parse::<Nanos>().ok()).flatten();
            with_unit.map(|ns| ns.0 as f64).ok_or_else(|| wrong("write it with its unit: `10ms`, `200us`"))
        }
        _ => number.ok_or_else(|| wrong("write a number, or a share such as `85% of idle`")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goals_print_as_they_parse() {
        for (text, printed) in [
            ("max rate", "max rate"),
            ("  maximise   sync-iops ", "max rate"),
            ("min p99", "min p99"),
            ("min latency_ms", "min latency_ms"),
            ("max bulk with p99<=10ms", "max bulk with p99 <= 10ms"),
            ("max 0.7*rate+0.3*bulk with rate >= 500", "max 0.7*rate + 0.3*bulk with rate >= 500"),
            ("max rate + 3*bulk", "max 0.25*rate + 0.75*bulk"),
            ("max 0.5*rate - 0.5*p99", "max 0.5*rate - 0.5*p99"),
            ("min 0.5*submit-p95 + 0.5*p99.9", "min 0.5*submit-p95 + 0.5*p99.9"),
            ("max rate with rate >= 85% of idle", "max rate with rate >= 85% of idle"),
            (
                "max rate with bulk >= 90 % of found, p99 <= 1.5ms and device >= 200MB/s",
                "max rate with bulk >= 90% of found and p99 <= 1500us and device >= 200MB/s",
            ),
            ("max rate keep p99 within 10%", "max rate keep p99 within 10%"),
            (
                "max rate with bulk >= 1MiB/s, keep p99 within 10% and keep bulk within 7.5%",
                "max rate with bulk >= 1048576B/s keep p99 within 10% keep bulk within 7.5%",
            ),
        ] {
            let goal: Goal = text.parse().unwrap();
            assert_eq!(goal.to_string(), printed);
            assert_eq!(printed.parse::<Goal>().unwrap(), goal);
            let json = serde_json::to_string(&goal).unwrap();
            assert_eq!(serde_json::from_str::<Goal>(&json).unwrap(), goal);
        }
    }

    #[test]
    fn what_is_wrong_and_what_would_be_right() {
        for (text, why, hint) in [
            ("", "does not begin with `max` or `min`", "`max rate`"),
            ("rate", "does not begin with `max` or `min`", "`max rate`"),
            ("max", "a figure is missing before the end", "rate, mean, p50"),
            ("max p99", "of p99, less is better", "`min p99`"),
            ("min bulk", "of bulk, more is better", "`max bulk`"),
            ("max 0*rate", "expected a weight, got `0`", "above 0"),
            ("max rate + rate", "rate is named twice", "one weight"),
            ("max rate with p99", "lacks its sign", "`p99 <= LIMIT`"),
            ("max rate with p99 <=", "has no limit", "`10ms`"),
            ("max rate with p99 <= 10", "expected a limit for p99", "`10ms`"),
            ("max rate with bulk >= fast", "expected a limit for bulk", "`200MB/s`"),
            ("max rate with rate >= many", "expected a limit for rate", "85% of idle"),
            ("max rate with rate >= 85%", "85 % of what?", "of idle"),
            ("max rate with rate >= x% of idle", "expected a percentage, got `x`", "`85%`"),
            ("max rate keep p99", "how far may p99 get worse?", "`keep p99 within 10%`"),
            ("max rate because", "`because` is not expected", "`max rate`"),
        ] {
            let told = text.parse::<Goal>().unwrap_err();
            assert!(told.why.contains(why), "{text}: {told}");
            assert!(told.hint.contains(hint), "{text}: {told}");
        }
    }

    #[test]
    fn words_at_a_distance() {
        for (from, to, expected) in
            [("rte", "rate", 1), ("p99", "p99", 0), ("", "max", 3), ("tps", "rate", 4)]
        {
            assert_eq!(distance(from, to), expected, "{from} {to}");
        }
    }
}
