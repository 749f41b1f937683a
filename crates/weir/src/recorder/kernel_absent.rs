//! What stands for the kernel's programs in a weir that was built without them.

use std::collections::BTreeMap;
use std::marker::PhantomData;

use weir_archive::interval::{Span, StageSum, Syncs};
use weir_archive::tables::{Event, Stage};
use weir_blocktrace::fsync::{Begun, LastIos, PastIo, SlowSync};
use weir_core::target::DeviceNumber;

use super::settings::RecorderSettings;
use super::whose::Known;

/// Nothing is kept.
#[derive(Default)]
pub struct Room;

/// None.
pub struct Programs<'a> {
    remarks: Vec<String>,
    room: PhantomData<&'a mut Room>,
}

/// What an interval brought: nothing.
#[derive(Default)]
pub struct Seen {
    /// Rows of stages.
    pub stages: Vec<Stage>,
    /// Rows of syncs.
    pub syncs: Syncs,
    /// Slow syncs, and what was lost.
    pub events: Vec<Event>,
    /// None.
    pub stage_sums: Vec<StageSum>,
    /// None.
    pub estimated: Vec<(String, u64)>,
    /// 0.
    pub issues_unwatched_ns: u64,
}

impl<'a> Programs<'a> {
    /// Says that there are none.
    pub fn start(
        _room: &'a mut Room,
        _devices: &[DeviceNumber],
        _settings: &RecorderSettings,
    ) -> Programs<'a> {
        let remark = "stages and syncs are not seen: this weir was built without its kernel programs";
        Programs { remarks: vec![remark.to_string()], room: PhantomData }
    }

    /// What is not seen, and why.
    pub fn remarks(&self) -> &[String] {
        &self.remarks
    }

    /// Whether anything is.
    pub fn see_syncs(&self) -> bool {
        false
    }

    /// Nothing to take.
    pub fn drain(&mut self, _known: &mut Known) -> Vec<SlowSync> {
        Vec::new()
    }

    /// Nothing to take.
    pub fn tick(&mut self, _known: &mut Known) -> Vec<SlowSync> {
        Vec::new()
    }

    /// None.
    pub fn see_stages(&self) -> bool {
        false
    }

    /// None.
    pub fn recent(
        &self,
        _device: Option<DeviceNumber>,
        _from_ns: u64,
        _to_ns: u64,
        _most: usize,
    ) -> LastIos<'_> {
        LastIos::default()
    }

    /// None.
    pub fn under_way(&self) -> &[Begun] {
        &[]
    }

    /// None.
    pub fn owners(&self, _ios: &[&PastIo]) -> BTreeMap<u32, String> {
        BTreeMap::new()
    }

    /// Nothing.
    pub fn interval(
        &mut self,
        _span: Span,
        _clock_ms: i64,
        _known: &mut Known,
        _name_of: impl Fn(DeviceNumber) -> Option<String>,
    ) -> Seen {
        Seen::default()
    }
}
