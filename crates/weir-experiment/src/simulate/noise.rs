//! Noise as real machines have it: neighbouring seconds are alike, neighbouring trials are alike, the day drifts, and
//! now and then something else runs.

use serde::{Deserialize, Serialize};

use weir_core::stats::random::Random;

/// How much of each kind. All are relative: 0.05 is a standard deviation of about 5 %.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Noise {
    /// Between seconds of a trial.
    pub second: f64,
    /// Correlation of a second with the one before.
    pub second_memory: f64,
    /// Between trials.
    pub trial: f64,
    /// Correlation of a trial with the one before.
    pub trial_memory: f64,
    /// Amplitude of the slow drift.
    pub drift: f64,
    /// Its period, s.
    pub drift_period_s: f64,
    /// Probability that something else runs during a part of a trial.
    pub burst: f64,
    /// What is left of the rate meanwhile.
    pub burst_leaves: f64,
}

impl Noise {
    /// A machine that is left alone.
    pub fn quiet() -> Noise {
        Noise {
            second: 0.06,
            second_memory: 0.5,
            trial: 0.025,
            trial_memory: 0.3,
            drift: 0.03,
            drift_period_s: 5_400.0,
            burst: 0.03,
            burst_leaves: 0.5,
        }
    }

    /// A virtual machine with neighbours.
    pub fn shared() -> Noise {
        Noise {
            second: 0.12,
            second_memory: 0.7,
            trial: 0.06,
            trial_memory: 0.5,
            drift: 0.10,
            drift_period_s: 3_600.0,
            burst: 0.08,
            burst_leaves: 0.3,
        }
    }

    /// None at all.
    pub fn none() -> Noise {
        Noise {
            second: 0.0,
            second_memory: 0.0,
            trial: 0.0,
            trial_memory: 0.0,
            drift: 0.0,
            drift_period_s: 1.0,
            burst: 0.0,
            burst_leaves: 1.0,
        }
    }
}

/// The noise of a machine over the trials made on it.
#[derive(Debug, Clone)]
pub struct Weather {
    noise: Noise,
    random: Random,
    /// State of the correlation between trials, standard normal.
    trial: f64,
    /// Where the drift was at the start, 0 to 1 of its period.
    phase: f64,
}

impl Weather {
    /// Its own for each seed.
    pub fn new(noise: Noise, seed: u64) -> Weather {
        let mut random = Random::new(seed);
        let (trial, phase) = (random.normal(), random.uniform());
        Weather { noise, random, trial, phase }
    }

    /// Factors on the rate for each second of a trial that starts at `at_s`.
    pub fn seconds(&mut self, at_s: f64, count: usize) -> Vec<f64> {
        let noise = self.noise;
        self.trial = step(self.trial, noise.trial_memory, &mut self.random);
        let of_trial = noise.trial * self.trial;
        let mut second = self.random.normal();
        let burst = self.burst(count);
        (0..count)
            .map(|i| {
                second = step(second, noise.second_memory, &mut self.random);
                let turn = self.phase + (at_s + i as f64) / noise.drift_period_s;
                let drift = noise.drift * (turn * std::f64::consts::TAU).sin();
                let left = if burst.contains(&i) { noise.burst_leaves } else { 1.0 };
                (of_trial + noise.second * second + drift).exp() * left
            })
            .collect()
    }

    /// Seconds during which something else runs: mostly none.
    fn burst(&mut self, count: usize) -> std::ops::Range<usize> {
        let (happens, start) = (self.random.uniform() < self.noise.burst, self.random.below(count.max(1)));
        let length = 1 + self.random.below(count / 2 + 1);
        if happens { start..(start + length).min(count) } else { 0..0 }
    }
}

/// A step of an AR(1) process with unit variance.
fn step(state: f64, memory: f64, random: &mut Random) -> f64 {
    memory * state + (1.0 - memory * memory).sqrt() * random.normal()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_spread_and_the_memory_are_those_asked_for() {
        let noise =
            Noise { trial: 0.0, drift: 0.0, burst: 0.0, second: 0.1, second_memory: 0.6, ..Noise::quiet() };
        let logs: Vec<f64> = Weather::new(noise, 5).seconds(0.0, 20_000).iter().map(|f| f.ln()).collect();
        let variance = logs.iter().map(|x| x * x).sum::<f64>() / 20_000.0;
        let neighbours = logs.windows(2).map(|w| w[0] * w[1]).sum::<f64>() / 20_000.0;
        assert!((variance.sqrt() - 0.1).abs() < 0.005, "{variance}");
        assert!((neighbours / variance - 0.6).abs() < 0.03, "{neighbours} {variance}");
        assert_eq!(Weather::new(noise, 5).seconds(0.0, 9), Weather::new(noise, 5).seconds(0.0, 9));
    }

    #[test]
    fn the_day_drifts_and_bursts_happen() {
        let drift = Noise { drift: 0.2, drift_period_s: 100.0, ..Noise::none() };
        let mut weather = Weather::new(drift, 1);
        let factors: Vec<f64> = (0..100).map(|i| weather.seconds(f64::from(i), 1)[0]).collect();
        let (least, most) = factors.iter().fold((f64::MAX, 0f64), |(l, m), f| (l.min(*f), m.max(*f)));
        assert!((most / least - 0.4f64.exp()).abs() < 0.01, "{least} {most}");
        let burst = Noise { burst: 0.25, burst_leaves: 0.5, ..Noise::none() };
        let mut weather = Weather::new(burst, 2);
        let hit = (0..1000).filter(|_| weather.seconds(0.0, 10).contains(&0.5)).count();
        assert!((200..300).contains(&hit), "{hit}");
    }
}
