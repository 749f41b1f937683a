//! Devices that share a limit. Each asks for a limit of its own; the least of them is set, since every one of them is
//! held by it.

use weir_control::{Effect, Limits};
use weir_host::knob::{KnobError, Move};

use super::governing::Governing;

/// A limit that was not taken is tried again after this long, and after twice as long each time.
const AGAIN_NS: u64 = 1_000_000_000;
const AGAIN_MOST_NS: u64 = 60_000_000_000;
/// The limit that is no limit, but counted: a share of a device that is whole.
pub const WHOLE: u64 = u64::MAX;

/// Takes an actuator over, whenever it is to be taken.
pub type Take = Box<dyn FnMut() -> Result<Box<dyn Governing>, KnobError>>;

/// What was asked for last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asked {
    /// The baseline, or a whole share.
    Nothing(Option<u64>),
    Limit(u64),
    /// The kernel refused it: what is in force is not known.
    Refused,
}

impl Asked {
    fn of(wanted: Option<u64>) -> Asked {
        match wanted {
            Some(bytes) if bytes != WHOLE => Asked::Limit(bytes),
            none => Asked::Nothing(none),
        }
    }
}

/// A limit and the devices under it.
pub struct Group {
    /// What is turned, in words.
    pub actuator: String,
    /// Whether it is of one device, or of one file system over several: then it goes and comes with that.
    pub of_device: bool,
    /// Indices of the devices.
    pub devices: Vec<usize>,
    /// The limits as they were at the last sample.
    pub limits: Limits,
    /// Why the limit is left alone, if it is.
    pub down: Option<String>,
    take: Take,
    turn: Option<Box<dyn Governing>>,
    asked: Asked,
    shadow: bool,
    /// Not before then, and after how long, if a limit was not taken. Forgotten once nothing was refused for as long again.
    again: Option<(u64, u64)>,
}

impl Group {
    /// Takes the actuator over.
    ///
    /// # Errors
    /// When it cannot be taken.
    pub fn begin(
        actuator: String,
        of_device: bool,
        devices: Vec<usize>,
        shadow: bool,
        mut take: Take,
    ) -> Result<Group, KnobError> {
        let mut turn = take()?;
        let limits = turn.limits()?;
        let (turn, asked) = (Some(turn), Asked::Nothing(None));
        Ok(Group { actuator, of_device, devices, limits, down: None, take, turn, asked, shadow, again: None })
    }

    /// Reads the limits. A limit that cannot be read keeps its last value.
    pub fn sample(&mut self) {
        if let Some(Ok(limits)) = self.turn.as_mut().map(|turn| turn.limits()) {
            self.limits = limits;
        }
    }

    /// Leads the limit to the least of what is asked for. What came of it; `None` where nothing was to be done.
    pub fn lead(&mut self, wishes: impl Iterator<Item = u64>, now_ns: u64) -> Option<Effect> {
        let wanted = wishes.min();
        let waits = self.again.is_some_and(|(until_ns, _)| now_ns < until_ns);
        if self.down.is_some() || waits || Asked::of(wanted) == self.asked {
            return None;
        }
        let turn = self.turn.as_mut()?;
        let moved = match wanted {
            Some(bytes) => turn.set(bytes),
            None => turn.release(),
        };
        match moved {
            Ok(Move::Written { .. }) => {
                let before = std::mem::replace(&mut self.asked, Asked::of(wanted));
                if matches!((before, self.asked), (Asked::Nothing(_), Asked::Nothing(_))) {
                    // How strictly no limit is counted is no decision of a law's.
                    return None;
                }
                let bytes = wanted.unwrap_or(u64::MAX).min(self.limits.saved_bytes);
                Some(if self.shadow { Effect::Shadow { bytes } } else { Effect::Written { bytes } })
            }
            Ok(over) => self.over(over),
            Err(error) => Some(self.refused(&error, now_ns)),
        }
    }

    /// Gives a sign of life, and takes what is due of the way to a lower limit. What came of it, if the limit is no longer the guard's or
    /// the kernel refused it.
    pub fn beat(&mut self, now_ns: u64) -> Option<Effect> {
        if self.down.is_some() {
            return None;
        }
        match self.turn.as_mut()?.beat() {
            Ok(Move::Written { .. }) => {
                self.again = self.again.filter(|(until_ns, wait_ns)| now_ns < until_ns + wait_ns);
                None
            }
            Ok(over) => self.over(over),
            // Nobody would restore the limit: the baseline is better than a limit without a guardian.
            Err(error @ KnobError::NoGuardian(_)) => self.over(Move::StoodDown { said: error.to_string() }),
            // What lasts is told once in each wait.
            Err(_) if self.again.is_some_and(|(until_ns, _)| now_ns < until_ns) => None,
            Err(error) => Some(self.refused(&error, now_ns)),
        }
    }

    fn refused(&mut self, error: &KnobError, now_ns: u64) -> Effect {
        let wait_ns = self.again.map_or(AGAIN_NS, |(_, wait_ns)| (wait_ns * 2).min(AGAIN_MOST_NS));
        (self.asked, self.again) = (Asked::Refused, Some((now_ns + wait_ns, wait_ns)));
        Effect::Refused { why: error.to_string() }
    }

    fn over(&mut self, over: Move) -> Option<Effect> {
        self.asked = Asked::Nothing(None);
        match over {
            // Whoever wrote the baseline wants it.
            Move::Reset { said } => {
                let said = if said.is_empty() { said } else { format!("; {said}") };
                self.over(Move::StoodDown { said: format!("another program wrote the baseline{said}") })
            }
            Move::StoodDown { said } => {
                self.down = Some(said.clone());
                Some(Effect::StoodDown { why: said })
            }
            Move::Gone { .. } => {
                self.turn = None;
                Some(Effect::Gone)
            }
            Move::Written { .. } => None,
        }
    }

    /// Whether the limit is there and held by the guard, or was and is left alone.
    pub fn is_there(&self) -> bool {
        self.turn.is_some()
    }

    /// The device that it holds is gone: so is the limit.
    pub fn let_go(&mut self) {
        self.turn = None;
        self.asked = Asked::Nothing(None);
    }

    /// Takes the actuator over again, if it is not.
    ///
    /// # Errors
    /// When it cannot be taken.
    pub fn take_again(&mut self) -> Result<bool, KnobError> {
        if self.turn.is_some() && self.down.is_none() {
            return Ok(false);
        }
        // What is left of the old one, such as its entry in the journal, would be in the way.
        self.turn = None;
        let mut turn = (self.take)()?;
        self.limits = turn.limits()?;
        (self.turn, self.asked, self.again, self.down) = (Some(turn), Asked::Nothing(None), None, None);
        Ok(true)
    }

    /// Restores the baseline, for good. The sentences tell what was restored.
    ///
    /// # Errors
    /// When the kernel does not take it.
    pub fn end(&mut self) -> Result<Vec<String>, KnobError> {
        self.turn.take().map_or(Ok(Vec::new()), |turn| turn.stop())
    }
}
