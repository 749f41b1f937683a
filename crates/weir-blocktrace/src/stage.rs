//! Moments in the life of an I/O, and the stages between them.

use serde::{Deserialize, Serialize};

/// A moment; see [`super::Times`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum Moment {
    /// Q: enters the block layer.
    Queue,
    /// G: gets a request.
    GetRequest,
    /// I: is put into the scheduler.
    Insert,
    /// M: is merged into a request.
    Merge,
    /// D: the request goes to the driver (the last time, if it came back).
    Issue,
    /// C: is done, all of it; a flush sequence's end where there is one.
    Complete,
}

/// A stage: the time between two moments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum Stage {
    /// Make the request: remap, split, wait for a free one.
    Q2G,
    /// From the request to its insertion into the scheduler.
    G2I,
    /// From the request to the driver where nothing was inserted (scheduler none).
    G2D,
    /// Wait in the scheduler.
    I2D,
    /// Until a bio was merged.
    Q2M,
    /// From the merge until its request went to the driver.
    M2D,
    /// Driver and device.
    D2C,
    /// All of it: what iostat calls await.
    Q2C,
    /// All before the driver.
    Q2D,
    /// From the request to the driver, inserted or not: G2I and I2D together, or G2D.
    G2DAll,
    /// From the request to its end: Q2C less what came before the request was there. Live sessions in default detail
    /// have it instead of Q2C.
    G2C,
}

impl Stage {
    /// How many there are.
    pub const COUNT: usize = 11;

    /// In the order of an I/O's life; the totals last.
    pub const ALL: [Stage; Stage::COUNT] = [
        Stage::Q2G,
        Stage::G2I,
        Stage::G2D,
        Stage::I2D,
        Stage::Q2M,
        Stage::M2D,
        Stage::D2C,
        Stage::Q2C,
        Stage::Q2D,
        Stage::G2DAll,
        Stage::G2C,
    ];

    /// The moments it lies between. G2D is only where nothing was inserted; see [`super::Times::stage`].
    #[inline]
    pub fn ends(self) -> (Moment, Moment) {
        use Moment::{Complete, GetRequest, Insert, Issue, Merge, Queue};
        match self {
            Stage::Q2G => (Queue, GetRequest),
            Stage::G2I => (GetRequest, Insert),
            Stage::G2D | Stage::G2DAll => (GetRequest, Issue),
            Stage::I2D => (Insert, Issue),
            Stage::Q2M => (Queue, Merge),
            Stage::M2D => (Merge, Issue),
            Stage::D2C => (Issue, Complete),
            Stage::Q2C => (Queue, Complete),
            Stage::Q2D => (Queue, Issue),
            Stage::G2C => (GetRequest, Complete),
        }
    }

    /// Short name, as in tables.
    pub fn name(self) -> &'static str {
        match self {
            Stage::Q2G => "Q2G",
            Stage::G2I => "G2I",
            Stage::G2D => "G2D",
            Stage::I2D => "I2D",
            Stage::Q2M => "Q2M",
            Stage::M2D => "M2D",
            Stage::D2C => "D2C",
            Stage::Q2C => "Q2C",
            Stage::Q2D => "Q2D",
            Stage::G2DAll => "G2D*",
            Stage::G2C => "G2C",
        }
    }
}
