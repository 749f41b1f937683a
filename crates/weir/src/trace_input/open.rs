//! Opens files and standard input, and unpacks what gzip or zstd packed, known by its first bytes.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use flate2::bufread::MultiGzDecoder;
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

use weir_blocktrace::decode::{Decoder, HEAD_BYTES};

use super::source::Source;

/// Packed bytes read at once.
const BUFFER: usize = 256 << 10;
/// The most that a zstd frame may ask weir to remember. Its own `--ultra --long` goes further and is refused.
const ZSTD_WINDOW_MAX: u64 = 32 << 20;

/// How many bytes of all files were read so far, for progress.
#[derive(Debug, Clone, Default)]
pub struct Meter(Arc<AtomicU64>);

impl Meter {
    /// Bytes as they lie in the files.
    pub fn bytes(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// A file under way.
struct Metered<R> {
    inner: R,
    meter: Meter,
}

impl<R: Read> Read for Metered<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(into)?;
        self.meter.0.fetch_add(n as u64, Ordering::Relaxed);
        Ok(n)
    }
}

/// Unpacked bytes of a source.
pub struct Opened {
    /// The bytes.
    pub reader: Box<dyn Read + Send>,
    /// Whether offsets are those of unpacked bytes.
    pub packed: bool,
    /// Whether reading may take long: it is unpacked, or comes from a pipe or a device.
    pub keeps_waiting: bool,
}

/// Opens a source and looks whether it is packed.
pub fn open(source: &Source, meter: &Meter) -> io::Result<Opened> {
    match &source.path {
        Some(path) => {
            // What nobody named may be a pipe by now that nobody writes to.
            let file = if source.named { File::open(path)? } else { weir_fs::regular_file(path)? };
            let is_plain = file.metadata()?.is_file();
            let opened = unpacked(file, meter)?;
            Ok(Opened { keeps_waiting: opened.packed || !is_plain, ..opened })
        }
        None => unpacked(io::stdin(), meter),
    }
}

/// Whether a file begins as a recording does.
pub fn is_recording(path: &Path) -> bool {
    // Nobody named it: it may be a pipe by now that nobody writes to.
    let Ok(mut opened) = weir_fs::regular_file(path).and_then(|file| unpacked(file, &Meter::default()))
    else {
        return false;
    };
    let mut head = Vec::new();
    let read = opened.reader.by_ref().take(HEAD_BYTES as u64).read_to_end(&mut head);
    read.is_ok() && Decoder::new("", &head).is_ok()
}

fn unpacked(file: impl Read + Send + 'static, meter: &Meter) -> io::Result<Opened> {
    let mut file = Metered { inner: file, meter: meter.clone() };
    let mut magic = [0; 4];
    let n = fill(&mut file, &mut magic)?;
    let whole = io::Cursor::new(magic).take(n as u64).chain(file);
    Ok(match magic {
        [0x1f, 0x8b, ..] => Opened {
            reader: Box::new(MultiGzDecoder::new(BufReader::with_capacity(BUFFER, whole))),
            packed: true,
            keeps_waiting: true,
        },
        [0x28, 0xb5, 0x2f, 0xfd] | [0x50..=0x5f, 0x2a, 0x4d, 0x18] => Opened {
            reader: Box::new(Zstd { packed: BufReader::with_capacity(BUFFER, whole), frame: None }),
            packed: true,
            keeps_waiting: true,
        },
        _ => Opened { reader: Box::new(whole), packed: false, keeps_waiting: true },
    })
}

/// Reads until the buffer is full or the stream ends; how much was read.
pub fn fill(reader: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match reader.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(n) => filled += n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

/// All frames of a zstd file, one after the other, skippable ones skipped.
struct Zstd<R: Read> {
    packed: BufReader<R>,
    frame: Option<Box<FrameDecoder>>,
}

impl<R: Read> Zstd<R> {
    /// Starts the next frame; nothing at the end of the file.
    fn next_frame(&mut self) -> io::Result<Option<Box<FrameDecoder>>> {
        while !self.packed.fill_buf()?.is_empty() {
            let mut decoder = Box::new(FrameDecoder::new());
            decoder.set_max_window_size(ZSTD_WINDOW_MAX);
            match decoder.init(&mut self.packed) {
                Ok(()) => return Ok(Some(decoder)),
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                    length,
                    ..
                })) => {
                    io::copy(&mut self.packed.by_ref().take(u64::from(length)), &mut io::sink())?;
                }
                Err(error) => return Err(damaged(error)),
            }
        }
        Ok(None)
    }
}

fn damaged(error: FrameDecoderError) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("zstd: {error}"))
}

impl<R: Read> Read for Zstd<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            let Some(mut decoder) = self.frame.take().map_or_else(|| self.next_frame(), |f| Ok(Some(f)))?
            else {
                return Ok(0);
            };
            if decoder.can_collect() == 0 && !decoder.is_finished() {
                decoder
                    .decode_blocks(&mut self.packed, BlockDecodingStrategy::UptoBytes(into.len()))
                    .map_err(damaged)?;
            }
            let n = decoder.read(into)?;
            if !decoder.is_finished() || decoder.can_collect() > 0 {
                self.frame = Some(decoder);
            } else if let (Some(said), Some(is)) =
                (decoder.get_checksum_from_data(), decoder.get_calculated_checksum())
                && said != is
            {
                let text = "zstd: the checksum of a frame does not match its content";
                return Err(io::Error::new(io::ErrorKind::InvalidData, text));
            }
            if n > 0 {
                return Ok(n);
            }
        }
    }
}
