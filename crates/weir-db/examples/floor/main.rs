//! What a client's side of a transaction costs in CPU, against the floor: a bare loop that sends and receives the same
//! bytes over the same kind of socket and looks at none of them.
//!
//! `floor mariadb|mysql|postgres [BLOCKS [TRANSACTIONS]]` starts a throw-away server in memory, writes down the bytes of
//! one oltp_read_write transaction, then runs blocks of transactions in turn by weir's connection and by the bare loop,
//! each on a connection of its own, and prints the median CPU time of either.

mod tap;
mod transaction;

use std::error::Error;
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use rustix::net::{RecvFlags, SendFlags, recv, send};
use weir_db::sandbox::{Flavour, Sandbox, SandboxSpec};
use weir_db::{Connection, Place, Server};

use tap::{Exchange, Tap};
use transaction::Transaction;

/// As much as weir's own connection reads at once.
const BUFFER_BYTES: usize = 32 << 10;
/// How many times the floor a transaction may cost.
const BAR: f64 = 1.5;

fn main() -> ExitCode {
    match run() {
        Ok(ratio) if ratio <= BAR => ExitCode::SUCCESS,
        Ok(ratio) => {
            eprintln!("floor: {ratio:.2} times the floor, {BAR} allowed");
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("floor: {error}");
            ExitCode::from(3)
        }
    }
}

/// The ratio that was measured.
fn run() -> Result<f64, Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let usage = "usage: floor mariadb|mysql|postgres [BLOCKS [TRANSACTIONS]]";
    let flavour: Flavour = arguments.next().ok_or(usage)?.parse()?;
    let blocks: usize = arguments.next().map_or(Ok(41), |text| text.parse())?;
    let transactions: u32 = arguments.next().map_or(Ok(50), |text| text.parse())?;
    let folder = tempfile::Builder::new().prefix("weir-floor").tempdir_in("/dev/shm")?;
    let spec = match flavour {
        Flavour::Postgres => SandboxSpec::new(flavour, folder.path().join("data")).set("fsync", "off"),
        _ => SandboxSpec::new(flavour, folder.path().join("data"))
            .set("innodb_flush_log_at_trx_commit", "0")
            .set("local_infile", "1"),
    };
    let sandbox = Sandbox::start(&spec, &|| false)?;
    let mut server = sandbox.server();
    server.answer_timeout = Some(Duration::from_secs(20));
    let mut admin = Connection::open(&server)?;
    if flavour != Flavour::Postgres {
        admin.run("CREATE DATABASE weir")?;
        server.database = "weir".into();
        admin = Connection::open(&server)?;
    }
    transaction::prepare_table(&mut admin)?;
    let (exchanges, bare) = record(&server, folder.path(), &sandbox.socket())?;
    drop(admin);
    let measured = measure(&server, &bare, &exchanges, blocks, transactions)?;
    Ok(print(flavour, &exchanges, &measured, transactions))
}

/// The bytes of one transaction, and a connection on which sending them means it again.
fn record(
    server: &Server,
    folder: &std::path::Path,
    socket: &std::path::Path,
) -> Result<(Vec<Exchange>, UnixStream), Box<dyn Error>> {
    let tap = Tap::open(folder, socket)?;
    let mut connection =
        Connection::open(&Server { place: Place::Unix(tap.socket.clone()), ..server.clone() })?;
    let transaction = Transaction::prepare(&mut connection)?;
    // The first time types are named and columns described.
    for _ in 0..3 {
        transaction.run(&mut connection)?;
    }
    tap.clear();
    transaction.run(&mut connection)?;
    Ok(tap.finish()?)
}

/// What a block of transactions took.
#[derive(Debug, Clone, Copy)]
struct Cost {
    cpu_us: f64,
    elapsed_us: f64,
}

struct Measured {
    weir: Vec<Cost>,
    bare: Vec<Cost>,
}

fn measure(
    server: &Server,
    bare: &UnixStream,
    exchanges: &[Exchange],
    blocks: usize,
    transactions: u32,
) -> Result<Measured, Box<dyn Error>> {
    bare.set_read_timeout(Some(Duration::from_secs(20)))?;
    let mut connection = Connection::open(server)?;
    let transaction = Transaction::prepare(&mut connection)?;
    let mut buffer = vec![0; BUFFER_BYTES];
    let mut measured = Measured { weir: Vec::new(), bare: Vec::new() };
    for block in 0..=blocks {
        let weir = timed(transactions, || Ok(transaction.run(&mut connection)?))?;
        let loops = timed(transactions, || Ok(replay(bare, exchanges, &mut buffer)?))?;
        // The first warms up.
        if block > 0 {
            measured.weir.push(weir);
            measured.bare.push(loops);
        }
    }
    Ok(measured)
}

fn replay(stream: &UnixStream, exchanges: &[Exchange], buffer: &mut [u8]) -> std::io::Result<()> {
    for exchange in exchanges {
        let mut request = exchange.request.as_slice();
        while !request.is_empty() {
            request = &request[send(stream, request, SendFlags::NOSIGNAL)?..];
        }
        let mut left = exchange.answer_bytes;
        while left > 0 {
            let (_, got) = recv(stream, &mut *buffer, RecvFlags::empty())?;
            if got == 0 || got > left {
                return Err(std::io::Error::other("the server's answers changed"));
            }
            left -= got;
        }
    }
    Ok(())
}

/// CPU and time of one transaction, the mean of a block.
fn timed(
    transactions: u32,
    mut act: impl FnMut() -> Result<(), Box<dyn Error>>,
) -> Result<Cost, Box<dyn Error>> {
    let (start, cpu) = (Instant::now(), thread_cpu_us());
    for _ in 0..transactions {
        act()?;
    }
    let cpu_end = thread_cpu_us();
    let per = |us: f64| us / f64::from(transactions);
    Ok(Cost { cpu_us: per(cpu_end - cpu), elapsed_us: per(start.elapsed().as_secs_f64() * 1e6) })
}

/// This thread's CPU time, the kernel's part of it included.
fn thread_cpu_us() -> f64 {
    let cpu = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    cpu.tv_sec as f64 * 1e6 + cpu.tv_nsec as f64 / 1e3
}

fn print(flavour: Flavour, exchanges: &[Exchange], measured: &Measured, transactions: u32) -> f64 {
    let sent: usize = exchanges.iter().map(|exchange| exchange.request.len()).sum();
    let received: usize = exchanges.iter().map(|exchange| exchange.answer_bytes).sum();
    println!(
        "{flavour}, oltp_read_write: {} statements, {sent} B sent, {received} B received; medians of {} blocks of \
         {transactions} transactions",
        exchanges.len(),
        measured.weir.len()
    );
    println!("{:<12} {:>14} {:>14}", "client", "CPU us/txn", "elapsed us");
    for (name, costs) in [("weir", &measured.weir), ("bare loop", &measured.bare)] {
        let of = |part: fn(&Cost) -> f64| median(costs.iter().map(part).collect());
        println!("{name:<12} {:>14.1} {:>14.1}", of(|cost| cost.cpu_us), of(|cost| cost.elapsed_us));
    }
    let mut ratios: Vec<f64> =
        measured.weir.iter().zip(&measured.bare).map(|(weir, bare)| weir.cpu_us / bare.cpu_us).collect();
    ratios.sort_by(f64::total_cmp);
    let quarter = ratios.len() / 4;
    let ratio = median(ratios.clone());
    println!(
        "ratio {ratio:.2} (middle half of the blocks: {:.2} to {:.2})",
        ratios.get(quarter).copied().unwrap_or(f64::NAN),
        ratios.get(ratios.len() - 1 - quarter).copied().unwrap_or(f64::NAN)
    );
    ratio
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
