//! How much time is left for an answer: the more has come, the more.

use super::WebError;
use hyper::body::Bytes;
use reqwest::Response;
use std::time::Duration;
use tokio::time::Instant;

/// What a server may be late with, and the bytes of each second after that.
const GRACE: Duration = Duration::from_secs(10);
const RATE: u32 = 4 * 1024;
/// For all of an answer that is held in memory.
const WHOLE: Duration = Duration::from_secs(120);
/// Between two pieces of a large one, however fast it was before.
const STALL: Duration = Duration::from_secs(30);
/// Until a server has stored what it was sent, and the bytes of each second that it may take meanwhile.
const STORING: Duration = Duration::from_secs(60);
const UPLOAD_RATE: u32 = 32 * 1024;

/// The clock of one answer.
#[derive(Debug)]
pub struct Clock {
    start: Instant,
    bytes: u64,
    grace: Duration,
    whole: Option<Duration>,
}

impl Clock {
    /// For an answer that is read at once.
    #[must_use]
    pub fn start() -> Self {
        Self {
            start: Instant::now(),
            bytes: 0,
            grace: GRACE,
            whole: Some(WHOLE),
        }
    }

    /// For an answer whose size only its reader bounds: 4 KiB a second, and never 30 s without a byte.
    #[must_use]
    pub fn unlimited() -> Self {
        Self {
            whole: None,
            ..Self::start()
        }
    }

    /// For an answer to so many bytes that are sent.
    #[must_use]
    pub fn sending(bytes: usize) -> Self {
        let sent = Duration::from_secs(bytes as u64) / UPLOAD_RATE;
        Self {
            grace: STORING + sent,
            whole: Some(STORING + sent + WHOLE),
            ..Self::start()
        }
    }

    /// What this comes to, unless time runs out before.
    ///
    /// # Errors
    /// When it does.
    pub async fn within<T>(&self, work: impl Future<Output = T>) -> Result<T, WebError> {
        let earned = self.grace + Duration::from_secs(self.bytes) / RATE;
        let end = match self.whole {
            Some(whole) => self.start + earned.min(whole),
            None => (self.start + earned).min(Instant::now() + STALL),
        };
        tokio::time::timeout_at(end, work).await.map_err(|_| WebError::TooSlow {
            bytes: self.bytes,
            seconds: self.start.elapsed().as_secs(),
        })
    }

    /// The next piece of an answer; none at its end.
    ///
    /// # Errors
    /// When it comes too slowly or not at all.
    pub async fn piece(&mut self, response: &mut Response) -> Result<Option<Bytes>, WebError> {
        let piece = self.within(response.chunk()).await??;
        self.bytes += piece.as_ref().map_or(0, |piece| piece.len() as u64);
        Ok(piece)
    }

    /// All of an answer, if it has no more bytes than that.
    ///
    /// # Errors
    /// When it has more, or comes too slowly.
    pub async fn read(&mut self, mut response: Response, limit: usize) -> Result<Vec<u8>, WebError> {
        let mut bytes = Vec::new();
        while let Some(piece) = self.piece(&mut response).await? {
            if bytes.len() + piece.len() > limit {
                return Err(WebError::TooLarge { limit });
            }
            bytes.extend_from_slice(&piece);
        }
        Ok(bytes)
    }
}
