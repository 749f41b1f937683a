use weir_core::units::*;
use weir_core::workload::spec::*;
use weir_core::workload::stream::{JobStream, Layout};
use weir_io::runner::*;
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let get =
        |k: &str, d: &str| a.iter().find_map(|x| x.strip_prefix(&format!("{k}="))).unwrap_or(d).to_string();
    let mut job = Job::default();
    job.engine = match get("engine", "psync").as_str() {
        "psync" => EngineKind::Psync,
        "libaio" => EngineKind::Libaio,
        "io_uring" => EngineKind::IoUring,
        "mmap" => EngineKind::Mmap,
        _ => EngineKind::Null,
    };
    job.depth = get("depth", "1").parse().unwrap();
    job.threads = get("threads", "1").parse().unwrap();
    job.direct = get("direct", "0") == "1";
    job.read_percent = get("read", "100").parse().unwrap();
    job.sync.every = get("sync", "0").parse().unwrap();
    job.verify = get("verify", "0") == "1";
    let rate: f64 = get("rate", "0").parse().unwrap();
    if rate > 0.0 {
        job.rate = Some(Rate {
            iops: rate,
            arrival: if get("arrival", "c") == "c" { Arrival::Constant } else { Arrival::Poisson },
        });
    }
    job.duration = get("time", "2").parse().unwrap();
    job.block = BlockSize::Fixed(get("bs", "4k").parse().unwrap());
    let size: Bytes = get("size", "1G").parse().unwrap();
    let (paths, bytes) = if job.engine == EngineKind::Null {
        job.target = Target::Null { size };
        (vec![], size.0)
    } else {
        let path = get("file", "/var/tmp/weirq");
        job.target = Target::File { path: path.clone().into(), size: Bytes(0) };
        let n = std::fs::metadata(&path).unwrap().len();
        (vec![path.into()], n)
    };
    let source = Box::new(JobStream::new(&job, &Layout { file_bytes: vec![bytes] }).unwrap());
    let r = run(
        vec![JobPlan { job: job.clone(), source, paths }],
        &RunOptions::default(),
        &mut Silent,
        &Stop::default(),
    )
    .unwrap();
    for r in r {
        let s = r.elapsed_ns as f64 / 1e9;
        for (c, x) in &r.classes {
            println!(
                "{:7} {:>9.0} IOPS  {:>7.1} ns/op mean {:>9.2} us p50 {:?} p99 {:?} max {:?} errors {}",
                c.name(),
                x.latency.count() as f64 / s,
                s * 1e9 / x.latency.count() as f64 * job.threads as f64,
                x.latency.mean().unwrap_or(0.0) / 1e3,
                x.latency.quantile(0.5),
                x.latency.quantile(0.99),
                x.latency.max(),
                x.errors
            );
        }
        let lsum: f64 =
            r.classes.iter().filter(|(c, _)| c.name() != "commit").map(|(_, x)| x.latency.sum() as f64).sum();
        println!(
            "elapsed {s:.3} in_flight_mean {:.2} little {:.3} max {} cpu {:.3}us/op  intervals {} {:?}",
            r.engine.in_flight_mean,
            lsum / r.elapsed_ns as f64 / r.engine.in_flight_mean,
            r.engine.in_flight_max,
            (r.cpu.process_user_ns + r.cpu.process_system_ns) as f64
                / 1e3
                / r.classes.values().map(|x| x.latency.count()).sum::<u64>() as f64,
            r.intervals.len(),
            r.engine.granted
        );
        println!(
            "{:?} {:?} {:?} late {:?} err {:?} ver {:?}",
            r.engine.refused, r.notes, r.final_sync, r.lateness, r.error, r.verify
        );
    }
}
