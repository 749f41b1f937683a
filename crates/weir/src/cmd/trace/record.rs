//! `weir trace record`: what was typed as options of a recording, and its summary.

use std::fs;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use jiff::Zoned;
use weir_cli::signals::stop_on_signals;
use weir_core::target::DeviceNumber;
use weir_core::units::{Bytes, Nanos};
use weir_kernel::capture::{self, DEVICES_MAX, Options, RING_BYTES, Source, Summary};

use super::outcome;
use crate::cli::trace::record::{Args, Choice, Events};
use crate::devices::named;
use crate::failure::{Lacking, Outcome, Usage};
use crate::kernel_traces::recording::{self, Recorded};
use crate::output::print;

/// Runs the command.
pub fn run(args: Args, _command: &[String]) -> anyhow::Result<Outcome> {
    let options = options(&args)?;
    let stop = stop_on_signals()?;
    let Recorded { summary, source, code } = recording::record(&options, args.duration, &stop)?;
    print(&told(&summary, source))?;
    complain(&summary)?;
    Ok(outcome(&stop, code))
}

fn options(args: &Args) -> anyhow::Result<Options> {
    if !args.ring_bytes.0.is_power_of_two() || !RING_BYTES.contains(&(args.ring_bytes.0 as usize)) {
        let what = format!("--ring-bytes {}: not a power of two", args.ring_bytes);
        let what = if args.ring_bytes.0.is_power_of_two() {
            what.replace("not a power of two", "out of range")
        } else {
            what
        };
        let (least, most) = (Bytes(*RING_BYTES.start() as u64), Bytes(*RING_BYTES.end() as u64));
        return Err(Usage { what, hint: Some(format!("a power of two from {least} to {most}")) }.into());
    }
    let out = args.out.clone().unwrap_or_else(|| default_out(args.blktrace));
    if let Ok(there) = fs::metadata(&out)
        && !args.blktrace
        && (there.is_dir() || there.file_type().is_block_device())
    {
        let what = format!("expected a file for --out, got {}", out.display());
        return Err(Usage { what, hint: Some("name the file to write".to_string()) }.into());
    }
    refuse_another_recording(&out, args.blktrace)?;
    Ok(Options {
        devices: devices(&[args.devices.as_slice(), &args.device].concat())?,
        events: match args.events {
            Events::Requests => capture::Events::Requests,
            Events::Bios => capture::Events::Bios,
            Events::All => capture::Events::All,
        },
        ring_bytes: args.ring_bytes.0 as usize,
        out,
        size_max_bytes: args.size_max.0,
        blktrace: args.blktrace,
        source: match args.source {
            Choice::Auto => None,
            Choice::Bpf => Some(Source::Bpf),
            Choice::Ftrace => Some(Source::Ftrace),
            Choice::Relay => Some(Source::Relay),
        },
        command: args.command.clone(),
    })
}

/// No recording can be made again: one of the same name is not replaced. An empty file holds none, and a pipe takes any.
fn refuse_another_recording(out: &Path, blktrace: bool) -> anyhow::Result<()> {
    let mut first = out.as_os_str().to_os_string();
    if blktrace {
        first.push(".blktrace.0");
    }
    if fs::metadata(&first).is_ok_and(|there| there.is_file() && there.len() > 0) {
        let what = format!("{} exists", Path::new(&first).display());
        let hint = "name another file for --out, or remove this one".to_string();
        return Err(Usage { what, hint: Some(hint) }.into());
    }
    Ok(())
}

fn default_out(blktrace: bool) -> PathBuf {
    let end = if blktrace { "" } else { ".weirtrace" };
    PathBuf::from(format!("weir-{}{end}", Zoned::now().strftime("%Y%m%d-%H%M%S")))
}

/// Numbers of the devices that were named.
fn devices(names: &[String]) -> anyhow::Result<Vec<DeviceNumber>> {
    let found: Vec<DeviceNumber> = named(names)?.iter().map(|device| device.number).collect();
    if found.len() > DEVICES_MAX {
        let what = format!("{} devices: a recording takes {DEVICES_MAX}, or all", found.len());
        let hint = "leave --device out to record every device".to_string();
        return Err(Usage { what, hint: Some(hint) }.into());
    }
    Ok(found)
}

fn told(summary: &Summary, source: Source) -> String {
    let files: Vec<String> = summary.paths.iter().map(|path| path.display().to_string()).collect();
    let per_second = summary.events as f64 / (summary.elapsed_ns.max(1) as f64 / 1e9);
    format!(
        "recorded   {} events in {} ({per_second:.0}/s) by {}\nto         {} ({})\nended      {}\ndropped    {}\n",
        summary.events,
        Nanos(summary.elapsed_ns),
        source.name(),
        files.join(" "),
        Bytes(summary.bytes),
        summary.reason,
        summary.dropped + summary.lost,
    )
}

/// Says what is missing from the recording, and fails if the disk did.
fn complain(summary: &Summary) -> anyhow::Result<()> {
    if summary.dropped > 0 {
        say!(
            "warning: {} events were dropped; a larger --ring-bytes or fewer --events may help",
            summary.dropped
        );
    }
    if let Some(lacks) = summary.lacks {
        say!("warning: {lacks}");
    }
    let Some(error) = &summary.write_error else { return Ok(()) };
    let place = summary.paths.first().map_or(Path::new(""), |path| path);
    let what = format!(
        "{}: {error}; {} events before that are kept, {} are lost",
        place.display(),
        summary.events,
        summary.lost
    );
    Err(Lacking { what, hint: Some("free some space, or name another file with --out".to_string()) }.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recording_replaces_none() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("empty"), "").unwrap();
        fs::write(at("a.weirtrace"), "a recording").unwrap();
        fs::write(at("b.blktrace.0"), "a recording").unwrap();
        for (out, blktrace, is_refused) in [
            ("a.weirtrace", false, true),
            ("a.weirtrace", true, false),
            ("b", true, true),
            ("b", false, false),
            ("empty", false, false),
        ] {
            let refused = refuse_another_recording(&at(out), blktrace);
            assert_eq!(refused.is_err(), is_refused, "{out} {blktrace}: {refused:?}");
        }
        assert!(refuse_another_recording(Path::new("/dev/null"), false).is_ok());
    }
}
