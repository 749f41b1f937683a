//! An analysis as JSON: figures for people and scripts first, then `data`, from which it can be read back.
//!
//! Names end in their unit; shares are 0 to 1; rates are over the device's time recorded. `docs/reference/trace-json.md` describes
//! every field.

use std::collections::BTreeMap;
use std::io;

use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::ser::Formatter;

use super::figures::{Figures, Kind, classes, rate, share, sizes, stage_key};
use super::json_time::{Heat, Timeline};
use weir_blocktrace::analysis::{Depth, Device, Direction, Events, Parts, Seeks, Sender, Traffic, WallClock};
use weir_blocktrace::{Analysis, Class, Extent, Reason, Stage};
use weir_core::stats::Distribution;
use weir_core::stats::claims;

/// Version of the document; fields may be added without it changing.
const SCHEMA: u32 = 1;

/// An analysis, with a newline at the end.
pub fn analysis(analysis: &Analysis) -> serde_json::Result<String> {
    let mut out = Vec::new();
    let mut serializer = serde_json::Serializer::with_formatter(&mut out, Indented::default());
    Document::of(analysis).serialize(&mut serializer)?;
    let figures = String::from_utf8_lossy(&out);
    // The data is for machines: on one line, as the last field.
    let data = serde_json::to_string(analysis)?;
    let open = figures.strip_suffix("\n}").unwrap_or(&figures);
    Ok(format!("{open},\n  \"data\": {data}\n}}\n"))
}

/// What [`analysis`] wrote, read back; nothing of it is taken from the figures.
///
/// # Errors
/// When it is something else, or damaged.
pub fn read(text: &str) -> serde_json::Result<Analysis> {
    #[derive(Deserialize)]
    struct Stored {
        data: Analysis,
    }
    claims::check_figures(text.as_bytes())?;
    weir_core::json::parse::<Stored>(text).map(|stored| stored.data)
}

/// Objects over several lines, lists of numbers on one.
#[derive(Default)]
struct Indented {
    depth: usize,
}

impl Indented {
    fn new_line<W: ?Sized + io::Write>(&self, out: &mut W) -> io::Result<()> {
        write!(out, "\n{:width$}", "", width = 2 * self.depth)
    }
}

impl Formatter for Indented {
    fn begin_object<W: ?Sized + io::Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.depth += 1;
        out.write_all(b"{")
    }

    fn begin_object_key<W: ?Sized + io::Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        out.write_all(if first { b"" } else { b"," })?;
        self.new_line(out)
    }

    fn begin_object_value<W: ?Sized + io::Write>(&mut self, out: &mut W) -> io::Result<()> {
        out.write_all(b": ")
    }

    fn end_object<W: ?Sized + io::Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.depth -= 1;
        self.new_line(out)?;
        out.write_all(b"}")
    }
}

#[derive(Serialize)]
struct Document<'a> {
    schema: u32,
    kind: &'static str,
    start_ns: u64,
    span_ns: u64,
    #[serde(flatten)]
    recorded: Recorded,
    #[serde(skip_serializing_if = "Option::is_none")]
    wall_clock: Option<WallClock>,
    events: u64,
    events_dropped: u64,
    events_of_further_devices: u64,
    unmatched: BTreeMap<Reason, u64>,
    devices: Vec<DeviceFigures<'a>>,
    processes: Vec<SenderFigures>,
    cgroups: Vec<SenderFigures>,
}

/// What rates are over: the time recorded, whose ends are the first and last event where the recording does not say more.
#[derive(Serialize)]
struct Recorded {
    recorded_start_ns: u64,
    recorded_ns: u64,
    recorded_from: &'static str,
    recorded_to: &'static str,
}

impl Recorded {
    fn of(extent: Extent, (begun_ns, ended_ns): (u64, u64)) -> Recorded {
        Recorded {
            recorded_start_ns: begun_ns,
            recorded_ns: ended_ns.saturating_sub(begun_ns),
            recorded_from: if extent.begun_ns.is_some() { "start" } else { "first_event" },
            recorded_to: if extent.ended_ns.is_some() { "end" } else { "last_event" },
        }
    }
}

/// A map in the order given.
struct Ordered<K, V>(Vec<(K, V)>);

impl<K: Serialize, V: Serialize> Serialize for Ordered<K, V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (key, value) in &self.0 {
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
}

type ByName<V> = Ordered<&'static str, V>;

#[derive(Serialize)]
struct DeviceFigures<'a> {
    device: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    start_ns: u64,
    span_ns: u64,
    #[serde(flatten)]
    recorded: Recorded,
    requests: u64,
    pieces: u64,
    bios: u64,
    events: &'a Events,
    classes: ByName<KindFigures>,
    sizes: ByName<Ordered<String, KindFigures>>,
    by_request: ByName<RequestFigures>,
    by_bio: ByName<BioFigures>,
    merges: Merges,
    seeks: QueueIssue<SeekFigures>,
    depth: QueueIssue<DepthFigures>,
    activity: Activity,
    plugs: PlugFigures,
    errors: &'a BTreeMap<i32, u64>,
    requests_requeued: u64,
    requests_completed_in_parts: u64,
    events_matched: u64,
    events_ambiguous: u64,
    events_dropped: u64,
    unmatched: &'a BTreeMap<Reason, u64>,
    timeline: Timeline,
    heat_map: Heat,
}

#[derive(Serialize)]
struct QueueIssue<T> {
    queue: T,
    issue: T,
}

#[derive(Serialize)]
struct KindFigures {
    pieces: u64,
    bytes: u64,
    errors: u64,
    pieces_per_s: f64,
    mb_per_s: f64,
    stages: ByName<Figures>,
    /// Of Q2C; they add up to 1.
    shares: ByName<f64>,
}

#[derive(Serialize)]
struct RequestFigures {
    requests: u64,
    bytes: u64,
    requests_per_s: f64,
    mb_per_s: f64,
    d2c: Figures,
    q2c: Figures,
}

#[derive(Serialize)]
struct BioFigures {
    q2c: Figures,
}

#[derive(Serialize)]
struct Merges {
    back: u64,
    front: u64,
    requests: u64,
    pieces_per_request: f64,
}

#[derive(Serialize)]
struct SeekFigures {
    count: u64,
    sequential_share: f64,
    mean_sectors: f64,
    median_sectors: u64,
}

#[derive(Serialize)]
struct DepthFigures {
    mean: f64,
    p50: usize,
    p90: usize,
    p99: usize,
    max: u64,
    seen_on_arrival_mean: f64,
    time_ns_by_depth: Vec<u64>,
}

#[derive(Serialize)]
struct Activity {
    active_periods: u64,
    active_ns: u64,
    active_share: f64,
    active_ns_max: u64,
    idle_ns: u64,
    idle_ns_max: u64,
}

#[derive(Serialize)]
struct PlugFigures {
    plugs: u64,
    unplugs: u64,
    unplugs_by_schedule: u64,
    requests_per_unplug: f64,
    requests_per_unplug_by_schedule: f64,
    plugged_ns: u64,
    plugged_share: f64,
}

#[derive(Serialize)]
struct SenderFigures {
    #[serde(skip_serializing_if = "String::is_empty")]
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<u64>,
    members: u64,
    pieces: u64,
    errors: u64,
    traffic: ByName<Traffic>,
    q2c: Figures,
    d2c: Figures,
    shares: ByName<f64>,
}

impl<'a> Document<'a> {
    fn of(analysis: &'a Analysis) -> Document<'a> {
        Document {
            schema: SCHEMA,
            kind: "trace",
            start_ns: analysis.start_ns,
            span_ns: analysis.span_ns(),
            recorded: Recorded::of(analysis.extent, analysis.recorded()),
            wall_clock: analysis.wall_clock,
            events: analysis.events,
            events_dropped: analysis.events_dropped(),
            events_of_further_devices: analysis.events_of_further_devices,
            unmatched: analysis.unmatched(),
            devices: analysis.devices.iter().map(|device| DeviceFigures::of(analysis, device)).collect(),
            processes: analysis.processes_by_name().iter().map(SenderFigures::of).collect(),
            cgroups: analysis.cgroups.iter().map(SenderFigures::of).collect(),
        }
    }
}

impl<'a> DeviceFigures<'a> {
    fn of(analysis: &'a Analysis, device: &'a Device) -> DeviceFigures<'a> {
        let recorded_ns = device.recorded_ns();
        let plugs = &device.plugs;
        DeviceFigures {
            device: device.device.to_string(),
            name: device.name.as_deref(),
            start_ns: device.start_ns,
            span_ns: device.span_ns(),
            recorded: Recorded::of(device.extent, device.recorded()),
            requests: device.requests,
            pieces: device.pieces,
            bios: device.bios,
            events: &device.events,
            classes: by_class(analysis, device, |class| {
                Kind::class(analysis, device, class).figures(recorded_ns)
            }),
            sizes: by_class(analysis, device, |class| by_size(analysis, device, class)),
            by_request: by_request(device),
            by_bio: by_bio(device),
            merges: Merges {
                back: device.events.back_merges,
                front: device.events.front_merges,
                requests: device.events.request_merges,
                pieces_per_request: share(device.pieces, device.requests),
            },
            seeks: QueueIssue { queue: seeks(&device.seeks_queue), issue: seeks(&device.seeks_issue) },
            depth: QueueIssue { queue: depth(&device.depth_queue), issue: depth(&device.depth_issue) },
            activity: activity(&device.depth_issue),
            plugs: PlugFigures {
                plugs: plugs.plugs,
                unplugs: plugs.unplugs,
                unplugs_by_schedule: plugs.unplugs_by_schedule,
                requests_per_unplug: share(plugs.requests, plugs.unplugs),
                requests_per_unplug_by_schedule: share(plugs.requests_by_schedule, plugs.unplugs_by_schedule),
                plugged_ns: plugs.plugged_ns,
                plugged_share: share(plugs.plugged_ns, recorded_ns),
            },
            errors: &device.errors,
            requests_requeued: device.requests_requeued,
            requests_completed_in_parts: device.requests_completed_in_parts,
            events_matched: device.account.matched,
            events_ambiguous: device.account.ambiguous,
            events_dropped: device.account.dropped,
            unmatched: &device.account.unmatched,
            timeline: Timeline::of(&device.timeline),
            heat_map: Heat::of(&device.timeline),
        }
    }
}

impl Kind {
    fn figures(&self, recorded_ns: u64) -> KindFigures {
        let stages = self.stages().into_iter().map(|(stage, figures)| (stage_key(stage), figures));
        KindFigures {
            pieces: self.cell.ios,
            bytes: self.cell.bytes,
            errors: self.cell.errors,
            pieces_per_s: rate(self.cell.ios, recorded_ns),
            mb_per_s: rate(self.cell.bytes, recorded_ns) / 1e6,
            stages: Ordered(stages.collect()),
            shares: shares(&self.parts),
        }
    }
}

impl SenderFigures {
    fn of(sender: &Sender) -> SenderFigures {
        let traffic = Direction::ALL.map(|direction| (direction.name(), sender.traffic[direction as usize]));
        let occurs = |(_, traffic): &(&str, Traffic)| traffic.requests > 0;
        SenderFigures {
            name: sender.name.clone(),
            id: (sender.members == 1).then_some(sender.id),
            members: sender.members,
            pieces: sender.pieces,
            errors: sender.errors,
            traffic: Ordered(traffic.into_iter().filter(occurs).collect()),
            q2c: Figures::of(&sender.q2c, None),
            d2c: Figures::of(&sender.d2c, sender.parts.share(Stage::D2C)),
            shares: shares(&sender.parts),
        }
    }
}

fn by_class<V>(analysis: &Analysis, device: &Device, of: impl Fn(Class) -> V) -> ByName<V> {
    Ordered(classes(analysis, device.device).into_iter().map(|class| (class.name(), of(class))).collect())
}

/// Keys are the largest length of the size class, in bytes.
fn by_size(analysis: &Analysis, device: &Device, class: Class) -> Ordered<String, KindFigures> {
    let sized = sizes(analysis, device.device, class).into_iter().map(|size| {
        let kind = Kind::sized(analysis, device, class, size);
        (size.bytes_max().to_string(), kind.figures(device.recorded_ns()))
    });
    Ordered(sized.collect())
}

fn by_request(device: &Device) -> ByName<RequestFigures> {
    let occur = Direction::ALL.into_iter().filter(|d| device.traffic[*d as usize].requests > 0);
    let figures = occur.map(|direction| {
        let (traffic, latency) =
            (&device.traffic[direction as usize], &device.request_latency[direction as usize]);
        let figures = RequestFigures {
            requests: traffic.requests,
            bytes: traffic.bytes,
            requests_per_s: rate(traffic.requests, device.recorded_ns()),
            mb_per_s: rate(traffic.bytes, device.recorded_ns()) / 1e6,
            d2c: Figures::of(&latency.d2c, None),
            q2c: Figures::of(&latency.q2c, None),
        };
        (direction.name(), figures)
    });
    Ordered(figures.collect())
}

fn by_bio(device: &Device) -> ByName<BioFigures> {
    let latency = |direction: Direction| -> &Distribution { &device.bio_latency[direction as usize] };
    let occur = Direction::ALL.into_iter().filter(|d| !latency(*d).is_empty());
    Ordered(occur.map(|d| (d.name(), BioFigures { q2c: Figures::of(latency(d), None) })).collect())
}

fn shares(parts: &Parts) -> ByName<f64> {
    let total_ns = parts.total_ns();
    let occur = parts.each().into_iter().filter(|(_, ns)| *ns > 0);
    Ordered(occur.map(|(stage, ns)| (stage.map_or("elsewhere", stage_key), share(ns, total_ns))).collect())
}

fn seeks(seeks: &Seeks) -> SeekFigures {
    SeekFigures {
        count: seeks.count,
        sequential_share: share(seeks.sequential, seeks.count),
        mean_sectors: seeks.mean_sectors(),
        median_sectors: seeks.median_sectors(),
    }
}

fn depth(depth: &Depth) -> DepthFigures {
    DepthFigures {
        mean: depth.mean(),
        p50: depth.quantile(0.5),
        p90: depth.quantile(0.9),
        p99: depth.quantile(0.99),
        max: depth.max,
        seen_on_arrival_mean: share(depth.seen_sum, depth.arrivals),
        time_ns_by_depth: depth.time_ns.clone(),
    }
}

fn activity(depth: &Depth) -> Activity {
    Activity {
        active_periods: depth.active_periods,
        active_ns: depth.active_ns(),
        active_share: share(depth.active_ns(), depth.active_ns() + depth.idle_ns()),
        active_ns_max: depth.active_ns_max,
        idle_ns: depth.idle_ns(),
        idle_ns_max: depth.idle_ns_max,
    }
}
