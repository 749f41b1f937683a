//! What a stream promises, over many jobs and layouts.

use proptest::prelude::*;

use super::*;
use crate::units::Bytes;
use crate::workload::spec::{Arrival, Distribution, Rate, SyncMode, SyncPolicy};

fn take(job: &Job, file_bytes: &[u64], n: usize) -> Vec<Op> {
    let mut stream = JobStream::new(job, &Layout { file_bytes: file_bytes.to_vec() }).unwrap();
    let mut ops = Vec::new();
    stream.fill(&mut ops, n);
    ops
}

fn accesses() -> impl Strategy<Value = Access> {
    prop_oneof![
        Just(Access::Sequential),
        Just(Access::Random(Distribution::Uniform)),
        (0.01f64..3.0).prop_map(|theta| Access::Random(Distribution::Zipf(theta))),
        (0.01f64..0.99).prop_map(|h| Access::Random(Distribution::Pareto(h))),
        (0.01f64..1.0).prop_map(|deviation| Access::Random(Distribution::Gaussian(deviation))),
        (0.01f64..0.99, 0.0f64..=1.0)
            .prop_map(|(blocks, accesses)| Access::Random(Distribution::Hot { blocks, accesses })),
    ]
}

fn blocks() -> impl Strategy<Value = BlockSize> {
    let size = (1u64..=64).prop_map(|sectors| Bytes(sectors * 512));
    prop_oneof![
        size.clone().prop_map(BlockSize::Fixed),
        prop::collection::vec((size, 0.1f64..10.0), 1..5).prop_map(BlockSize::Split),
    ]
}

proptest! {
    #[test]
    fn operations_lie_inside_their_file_and_on_the_grid(
        access in accesses(),
        block in blocks(),
        skipped_blocks in 0u64..3,
        seed: u64,
        slack in prop::collection::vec(0u64..500_000, 1..6),
    ) {
        let offset = skipped_blocks * block.smallest();
        let least = offset + block.largest().next_multiple_of(block.smallest());
        let files: Vec<u64> = slack.iter().map(|more| least + more).collect();
        let job = Job { access, block: block.clone(), seed, offset: Bytes(offset), read_percent: 50.0, ..Job::default() };
        for op in take(&job, &files, 300) {
            let end = op.offset + u64::from(op.len);
            prop_assert!(op.offset >= offset && end <= files[op.file as usize], "{op:?} of {files:?}");
            prop_assert_eq!((op.offset - offset) % block.smallest(), 0);
            let sizes: Vec<u64> = match &block {
                BlockSize::Fixed(size) => vec![size.0],
                BlockSize::Split(sizes) => sizes.iter().map(|(size, _)| size.0).collect(),
            };
            prop_assert!(sizes.contains(&u64::from(op.len)));
        }
    }

    #[test]
    fn the_sequence_depends_on_the_seed_alone(access in accesses(), seed: u64, portions in prop::collection::vec(1usize..70, 1..20)) {
        let job = Job {
            access,
            seed,
            read_percent: 70.0,
            sync: SyncPolicy { every: 3, ..SyncPolicy::default() },
            rate: Some(Rate { iops: 1e5, arrival: Arrival::Poisson }),
            ..Job::default()
        };
        let files = [1 << 20, 3 << 20];
        let many_threads = Job { threads: 16, ..job.clone() };
        let mut stream = JobStream::new(&many_threads, &Layout { file_bytes: files.to_vec() }).unwrap();
        let mut in_portions = Vec::new();
        for portion in &portions {
            stream.fill(&mut in_portions, *portion);
        }
        let expected = take(&job, &files, in_portions.len());
        prop_assert_eq!(&in_portions, &expected);
        let other = take(&Job { seed: seed ^ 1, ..job }, &files, 200);
        prop_assert_ne!(other, take(&many_threads, &files, 200));
    }

    #[test]
    fn reads_and_writes_are_interleaved_evenly(percent in 1u32..100, seed: u64) {
        let job = Job { read_percent: f64::from(percent), seed, ..Job::default() };
        let reads: Vec<u32> = take(&job, &[1 << 20], 1000).iter().map(|op| u32::from(op.kind == OpKind::Read)).collect();
        // A window of 100 holds exactly the percentage, and no shorter window is more than one off.
        for window in reads.windows(100) {
            prop_assert_eq!(window.iter().sum::<u32>(), percent);
        }
        for length in [3usize, 10, 32] {
            for window in reads.windows(length) {
                let expected = f64::from(percent) / 100.0 * length as f64;
                prop_assert!((f64::from(window.iter().sum::<u32>()) - expected).abs() < 1.0);
            }
        }
    }

    #[test]
    fn every_nth_write_is_a_commit(every in 1u64..20, percent in 0u32..100) {
        let sync = SyncPolicy { every, mode: SyncMode::RwfDsync, at_end: false };
        let job = Job { sync, read_percent: f64::from(percent), ..Job::default() };
        let mut writes = 0;
        for op in take(&job, &[1 << 20], 500) {
            writes += u64::from(op.kind == OpKind::Write);
            let commits = op.kind == OpKind::Write && writes % every == 0;
            prop_assert_eq!(op.then == Then::Commit(SyncMode::RwfDsync), commits);
        }
    }
}

#[test]
fn sequential_goes_through_all_files_in_order_and_wraps() {
    let job = Job { access: Access::Sequential, ..Job::default() };
    let places: Vec<(u32, u64)> =
        take(&job, &[8192, 4096, 13_000], 7).iter().map(|op| (op.file, op.offset)).collect();
    assert_eq!(places, [(0, 0), (0, 4096), (1, 0), (2, 0), (2, 4096), (2, 8192), (0, 0)]);
}

#[test]
fn equal_files_divide_exactly() {
    for slots in [2u64, 3, 7, 4096, 131_071, 1 << 30] {
        let layout = Layout { file_bytes: vec![slots * 4096; 5] };
        let map = FileMap::new(&Job::default(), &layout).unwrap();
        for file in 0..5 {
            for slot in [file * slots, file * slots + 1, file * slots + slots / 2, (file + 1) * slots - 1] {
                assert_eq!(map.file_of(slot) as u64, slot / slots, "slot {slot} of files of {slots}");
            }
        }
    }
}

#[test]
fn the_stream_ends_after_its_operations() {
    let job = Job { operations: 100, ..Job::default() };
    let mut stream = JobStream::new(&job, &Layout { file_bytes: vec![1 << 20] }).unwrap();
    let mut ops = Vec::new();
    for expected in [64, 100, 100] {
        stream.fill(&mut ops, 64);
        assert_eq!(ops.len(), expected);
    }
}

#[test]
fn split_weights_act_on_sizes() {
    let split = vec![(Bytes(4096), 60.0), (Bytes(16384), 30.0), (Bytes(65536), 10.0)];
    let job = Job { block: BlockSize::Split(split), ..Job::default() };
    let ops = take(&job, &[1 << 30], 100_000);
    for (len, share) in [(4096, 0.6), (16384, 0.3), (65536, 0.1)] {
        let found = ops.iter().filter(|op| op.len == len).count() as f64 / ops.len() as f64;
        assert!((found - share).abs() < 0.01, "{len}: {found}");
    }
}

#[test]
fn distributions_act_on_offsets() {
    // The share of accesses that the most popular 1 % of 10 000 blocks get.
    let top_share = |distribution| {
        let job = Job { access: Access::Random(distribution), ..Job::default() };
        let mut counts = vec![0u64; 10_000];
        for op in take(&job, &[10_000 * 2048, 10_000 * 2048], 200_000) {
            counts[(op.file as u64 * 5000 + op.offset / 4096) as usize] += 1;
        }
        counts.sort_unstable_by(|a, b| b.cmp(a));
        counts[..100].iter().sum::<u64>() as f64 / 200_000.0
    };
    let harmonic = |n: u64| (1..=n).map(|k| 1.0 / k as f64).sum::<f64>();
    let pareto = 0.01f64.powf(0.8f64.ln() / 0.2f64.ln());
    for (distribution, expected, tolerance) in [
        // Chance lifts the best 1 % of equal blocks (20 accesses each) to some 1.6 %.
        (Distribution::Uniform, 0.016, 0.002),
        (Distribution::Zipf(1.0), harmonic(100) / harmonic(10_000), 0.01),
        (Distribution::Pareto(0.2), pareto, 0.01),
        (Distribution::Hot { blocks: 0.01, accesses: 0.9 }, 0.9, 0.005),
    ] {
        let share = top_share(distribution);
        assert!((share - expected).abs() < tolerance, "{distribution:?}: {share}, not {expected}");
    }
}

#[test]
fn a_block_beyond_the_file_is_refused() {
    let layout = Layout { file_bytes: vec![1 << 20, 4095] };
    let error = JobStream::new(&Job::default(), &layout).unwrap_err();
    assert_eq!(error.what, "a block of 4 KiB does not fit into a file of 4095 bytes");
}

#[test]
fn batches_keep_the_order_where_it_matters() {
    let random = Job { threads: 4, ..Job::default() };
    let writes = Job { read_percent: 0.0, ..random.clone() };
    let every = |every| Job { sync: SyncPolicy { every, ..SyncPolicy::default() }, ..writes.clone() };
    let rate = Some(Rate { iops: 10.0, arrival: Arrival::Constant });
    for (job, expected) in [
        (random.clone(), 64),
        (Job { access: Access::Sequential, ..random.clone() }, 1),
        (Job { access: Access::Sequential, threads: 1, ..random.clone() }, 64),
        (every(1), 64),
        (every(8), 1),
        (Job { rate, ..random.clone() }, 1),
        (Job { operations: 1000, ..random.clone() }, 3),
    ] {
        assert_eq!(batch_of(&job), expected, "{job:?}");
    }
}
