//! Test files, made once for all trials that use the same ones, written in full, and always removed at the end.

use weir_core::workload::Job;
use weir_core::workload::spec::Target;
use weir_core::workload::stream::{JobStream, Layout};
use weir_io::IoError;
use weir_io::files::{Prepared, prepare};
use weir_io::runner::{JobPlan, Stop};

use crate::progress::Progress;

/// What was made so far.
#[derive(Default)]
pub struct Files {
    made: Vec<(Target, Prepared)>,
}

impl Files {
    /// The job with its stream over files that are there; makes them if they are not.
    pub fn plan(&mut self, job: Job, stop: &Stop) -> Result<JobPlan, IoError> {
        let prepared = self.prepared(&job, stop)?;
        let layout = Layout { file_bytes: prepared.file_bytes.clone() };
        let source = JobStream::new(&job, &layout)
            .map_err(|error| IoError { hint: error.hint.clone(), ..IoError::usage(error.to_string()) })?;
        Ok(JobPlan { source: Box::new(source), places: prepared.places.clone(), job })
    }

    /// Makes the files of a job, if they are not there.
    pub fn prepared(&mut self, job: &Job, stop: &Stop) -> Result<&Prepared, IoError> {
        let at = match self.made.iter().position(|(target, _)| *target == job.target) {
            Some(at) => at,
            None => {
                let mut progress = Progress::new();
                let prepared = prepare(job, stop, &mut |done, all| progress.filling(done, all))?;
                self.made.push((job.target.clone(), prepared));
                self.made.len() - 1
            }
        };
        Ok(&self.made[at].1)
    }
}
