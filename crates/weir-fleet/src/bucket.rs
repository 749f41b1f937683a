//! The tables in an object store: S3, Google's, Azure's, and what speaks as they do. A push uploads what the bucket lacks, and
//! writes an index last: readers go by the index alone, and so see the tables before a push or after it.

use std::collections::BTreeMap;
use std::io::Read;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context;
use object_store::path::Path;
use object_store::{Error, ObjectStore, ObjectStoreExt, PutMode, PutOptions, UpdateVersion};
use serde::{Deserialize, Serialize};
use tokio::task::JoinSet;
use url::Url;
use weir_cli::failure::{lacking, usage};
use weir_fs::Access;
use weir_store::SCHEMA;
use weir_store::layout::Place;

use crate::archive::{Archive, Stored};

/// The index, beside the folders of the tables.
const INDEX: &str = "weir-store.json";
const INDEX_SCHEMA: &str = "weir.store.index/1";
/// The longest index that is read: of a million files.
const INDEX_MAX: u64 = 256 << 20;
/// Files on their way at the same time.
const AT_ONCE: usize = 8;
const PROGRESS_EVERY: Duration = Duration::from_secs(10);

const FORM: &str =
    "s3://BUCKET/PREFIX, gs://… or az://…; keys come from the environment, as AWS_ACCESS_KEY_ID and so on";

/// A prefix in a bucket.
#[derive(Clone)]
pub struct Bucket {
    store: Arc<dyn ObjectStore>,
    /// The whole address.
    url: Url,
    /// Without the bucket.
    prefix: Path,
}

/// What lies there.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct Index {
    schema: String,
    tables: String,
    /// Lengths of files, by path.
    files: BTreeMap<String, u64>,
    /// Files that the index before had and this one has no more. They go with the next push: who has read the index before may
    /// still read them.
    superseded: Vec<String>,
}

/// What a push did.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Pushed {
    /// Files that were uploaded, and their bytes.
    pub files: usize,
    pub bytes: u64,
    /// Files that were removed there.
    pub removed: usize,
}

impl Bucket {
    /// As it was typed. Nothing is connected yet.
    ///
    /// # Errors
    /// An address of no kind that is known; keys that are none.
    pub fn new(text: &str) -> anyhow::Result<Bucket> {
        // Without the address: there may be keys in it.
        let wrong = |why: String| usage(format!("--bucket: {why}"), &format!("expected {FORM}"));
        let url = Url::parse(text.trim_end_matches('/')).map_err(|error| wrong(error.to_string()))?;
        if !["s3", "s3a", "gs", "az", "azure", "abfs", "abfss"].contains(&url.scheme()) {
            return Err(wrong(format!("{}: is no address of an object store", url.scheme())));
        }
        if url.password().is_some() {
            return Err(wrong("every account of this machine sees keys in an address".to_string()));
        }
        let environment = std::env::vars_os()
            .filter_map(|(key, value)| Some((key.to_str()?.to_ascii_lowercase(), value.into_string().ok()?)));
        let (store, prefix) =
            object_store::parse_url_opts(&url, environment).map_err(|error| wrong(error.to_string()))?;
        Ok(Bucket { store: Arc::from(store), url, prefix })
    }

    /// The address as it was typed.
    pub fn url(&self) -> &Url {
        &self.url
    }

    /// What DataFusion reads it by.
    pub fn store(&self) -> Arc<dyn ObjectStore> {
        Arc::clone(&self.store)
    }

    /// The files that count, in order.
    ///
    /// # Errors
    /// Nobody there, no index, one of a weir to come.
    pub fn files(&self) -> anyhow::Result<Vec<Stored>> {
        let index = runtime()?.block_on(self.index())?.map(|(index, _)| index);
        let index = index.ok_or_else(|| {
            usage(
                format!("no tables in {}", self.url),
                "`weir fleet push --bucket URL` brings those of a folder of results there",
            )
        })?;
        let mut files: Vec<Stored> =
            index.files.iter().filter_map(|(path, bytes)| stored(path, *bytes)).collect();
        files.sort();
        Ok(files)
    }

    async fn index(&self) -> anyhow::Result<Option<(Index, UpdateVersion)>> {
        let got = match self.store.get(&self.path(INDEX)).await {
            Err(Error::NotFound { .. }) => return Ok(None),
            got => got.map_err(|error| self.explained(&error))?,
        };
        if got.meta.size > INDEX_MAX {
            return Err(lacking(format!("{}: an index of {} bytes", self.url, got.meta.size), ""));
        }
        let version = UpdateVersion { e_tag: got.meta.e_tag.clone(), version: got.meta.version.clone() };
        let bytes = got.bytes().await.map_err(|error| self.explained(&error))?;
        let index: Index = serde_json::from_slice(&bytes)
            .map_err(|error| lacking(format!("{}/{INDEX} is damaged: {error}", self.url), ""))?;
        if index.schema != INDEX_SCHEMA || index.tables != SCHEMA {
            let what = format!("{}: tables of schema {} {}", self.url, index.schema, index.tables);
            return Err(lacking(what, "which this weir does not know; a newer one may"));
        }
        Ok(Some((index, version)))
    }

    /// Brings files of an archive there. What the bucket has of `damaged` ones stays there: it may be the only whole copy.
    ///
    /// # Errors
    /// Nobody there, no right to write, another push at the same time.
    pub fn push(&self, archive: &Archive, files: &[Stored], damaged: &[Stored]) -> anyhow::Result<Pushed> {
        let mut here: BTreeMap<String, u64> = files.iter().map(|file| (file.below(), file.bytes)).collect();
        runtime()?.block_on(async {
            let found = self.index().await?;
            let there = found.as_ref().map(|(index, _)| index.clone()).unwrap_or_default();
            let missing: Vec<String> =
                here.keys().filter(|path| there.files.get(*path) != here.get(*path)).cloned().collect();
            let mut pushed = Pushed { files: missing.len(), ..Pushed::default() };
            pushed.bytes = self.upload(archive, missing).await?;
            for below in damaged.iter().map(Stored::below) {
                if let Some(bytes) = there.files.get(&below) {
                    here.insert(below, *bytes);
                }
            }
            let mut superseded: Vec<String> =
                there.files.into_keys().filter(|path| !here.contains_key(path)).collect();
            // Those of two indexes ago. What no index of weir's has named stays.
            let mut old = there.superseded;
            old.retain(|path| !here.contains_key(path) && stored(path, 0).is_some());
            self.keep_those_there(&mut old).await?;
            superseded.extend(old.iter().cloned());
            let is_same = found
                .as_ref()
                .is_some_and(|(index, _)| index.files == here && index.superseded == superseded);
            if !is_same {
                let index =
                    Index { schema: INDEX_SCHEMA.into(), tables: SCHEMA.into(), files: here, superseded };
                self.replace(&index, found.map(|(_, version)| version)).await?;
            }
            // Only now: had another push won, its index could name them. They stay listed until they are seen to be gone.
            for path in &old {
                match self.store.delete(&self.path(path)).await {
                    Ok(()) => pushed.removed += 1,
                    Err(Error::NotFound { .. }) => {}
                    Err(error) => say!("{}: {path} stays: {error}", self.url),
                }
            }
            Ok(pushed)
        })
    }

    /// Leaves out what is not there any more.
    async fn keep_those_there(&self, paths: &mut Vec<String>) -> anyhow::Result<()> {
        for path in std::mem::take(paths) {
            match self.store.head(&self.path(&path)).await {
                Ok(_) => paths.push(path),
                Err(Error::NotFound { .. }) => {}
                Err(error) => return Err(self.explained(&error)),
            }
        }
        Ok(())
    }

    /// Uploads files, some at a time; returns how many bytes they have.
    async fn upload(&self, archive: &Archive, missing: Vec<String>) -> anyhow::Result<u64> {
        let root = archive.open()?;
        let (all, mut done, mut bytes, mut told) = (missing.len(), 0, 0, Instant::now());
        let (mut missing, mut under_way) = (missing.into_iter(), JoinSet::new());
        loop {
            while under_way.len() < AT_ONCE {
                let Some(below) = missing.next() else { break };
                let what = || format!("cannot read {}", archive.root().join(&below).display());
                let mut content = Vec::new();
                let file = root.open_file(&below, Access::Read).with_context(what)?;
                file.take(u64::MAX).read_to_end(&mut content).with_context(what)?;
                bytes += content.len() as u64;
                let (bucket, path) = (self.clone(), self.path(&below));
                under_way.spawn(async move { bucket.store.put(&path, content.into()).await });
            }
            let Some(ended) = under_way.join_next().await else { return Ok(bytes) };
            ended?.map_err(|error| self.explained(&error))?;
            done += 1;
            if told.elapsed() >= PROGRESS_EVERY {
                told = Instant::now();
                say!("{done} of {all} files");
            }
        }
    }

    /// Writes the index in place of the one that was read, if nobody else has done so meanwhile.
    async fn replace(&self, index: &Index, read: Option<UpdateVersion>) -> anyhow::Result<()> {
        let mode = read.map_or(PutMode::Create, PutMode::Update);
        let options = PutOptions { mode, ..PutOptions::default() };
        let bytes = serde_json::to_vec(index)?;
        let put = self.store.put_opts(&self.path(INDEX), bytes.into(), options).await;
        put.map(drop).map_err(|error| match error {
            Error::Precondition { .. } | Error::AlreadyExists { .. } => {
                lacking(format!("another process pushed to {} at the same time", self.url), "push again")
            }
            error => self.explained(&error),
        })
    }

    fn path(&self, below: &str) -> Path {
        below.split('/').fold(self.prefix.clone(), |path, part| path.join(part))
    }

    fn explained(&self, error: &Error) -> anyhow::Error {
        let hint = match error {
            Error::Unauthenticated { .. } | Error::PermissionDenied { .. } => {
                "keys come from the environment: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, GOOGLE_APPLICATION_CREDENTIALS, AZURE_STORAGE_…"
            }
            Error::NotFound { .. } => "is there such a bucket?",
            _ => "AWS_REGION and, for a server of your own, AWS_ENDPOINT say where S3 is",
        };
        lacking(format!("{}: {error}", self.url), hint)
    }
}

/// A path that an index names, if it is one of weir's tables.
fn stored(path: &str, bytes: u64) -> Option<Stored> {
    let parts: Vec<&str> = path.split('/').collect();
    let [kind, day, host, name] = parts[..] else { return None };
    let plain = |part: &str| {
        !part.is_empty() && part.chars().all(|c| c.is_ascii_alphanumeric() || "._-=~:".contains(c))
    };
    let is_file = name.ends_with(".parquet") && !name.starts_with('.');
    let place = Place::parse(kind, day, host)?;
    (is_file && plain(host) && plain(name)).then(|| Stored { place, name: name.to_string(), bytes })
}

fn runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    Ok(tokio::runtime::Builder::new_current_thread().enable_all().build()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_names_nothing_but_files_of_tables() {
        let good = "kind=stages/date=2026-11-25/host=db1~0a/a.parquet";
        assert_eq!(stored(good, 7).unwrap().below(), good);
        for bad in [
            "a.parquet",
            "kind=stages/date=2026-11-25/host=../a.parquet/..",
            "kind=stages/date=2026-11-25/host=a/../../x.parquet",
            "kind=stages/date=2026-11-25/host=a/.x.parquet",
            "kind=stages/date=2026-11-25/host=a/x.json",
            "kind=stages/date=2026-11-25/host=a*/x.parquet",
            "kind=doctor/date=2026-11-25/host=a/x.parquet",
        ] {
            assert!(stored(bad, 7).is_none(), "{bad}");
        }
    }

    #[test]
    fn an_address_is_one_of_an_object_store() {
        for bad in
            ["bucket", "file:///tmp", "http://x/y", "s3://key:secret@bucket/x", "s3://:secret@bucket/x"]
        {
            let Err(error) = Bucket::new(bad) else { panic!("{bad}") };
            assert!(!format!("{error:#}").contains("secret"), "{error:#}");
        }
        let bucket = Bucket::new("s3://fleet/prod/").unwrap();
        assert_eq!(bucket.path("kind=stages/x").as_ref(), "prod/kind=stages/x");
    }
}
