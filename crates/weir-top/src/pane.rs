//! The parts of the screen.

/// A part of the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Pane {
    /// Devices.
    Devices,
    /// Classes of I/O of the selected device.
    Classes,
    /// Processes.
    Processes,
    /// Slow syncs.
    Slow,
}

impl Pane {
    /// From top to bottom.
    pub const ALL: [Pane; 4] = [Pane::Devices, Pane::Classes, Pane::Processes, Pane::Slow];
}
