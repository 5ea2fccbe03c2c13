//! What templates of charts see beyond their language (`minijinja_budget`): the images of the release, and a way to refuse.

use super::image;
use super::model::Chart;
use minijinja_budget::Budget;
use minijinja_budget::minijinja::{Environment, Error, ErrorKind};
use serde_json::Value;
use std::io;

/// Bytes the templates of a chart may write, all together. The largest driver manifest is 25 KiB.
pub(super) const OUTPUT_LIMIT: usize = 2 << 20;

/// An environment with the chart's templates. Only files of the chart can be included: there is no loader.
pub(super) fn environment(chart: &Chart, values: &Value) -> Result<Environment<'static>, Error> {
    let budget = Budget::default();
    let mut environment = chart.metered.environment(&budget)?;
    environment.add_function("fail", |message: String| -> Result<String, Error> {
        Err(Error::new(ErrorKind::InvalidOperation, message).with_source(Said))
    });
    let images = chart.release.images.clone();
    let settings = values.get("images").cloned();
    environment.add_function("image", move |name: String| {
        let reference =
            image::reference(&images, settings.as_ref(), &name).map_err(|message| Error::new(ErrorKind::InvalidOperation, message))?;
        budget.charge(reference.len())?;
        Ok(reference)
    });
    Ok(environment)
}

/// Marks an error that a chart's author foresaw: its message is for the user, and the place in the template is not.
#[derive(Debug, thiserror::Error)]
#[error("the chart refuses it")]
pub(super) struct Said;

/// A buffer that refuses to grow beyond its limit.
pub(super) struct Limited {
    /// What was written.
    pub(super) bytes: Vec<u8>,
    /// Whether something was refused.
    pub(super) full: bool,
    limit: usize,
}

impl Limited {
    /// An empty buffer for at most `limit` bytes.
    pub(super) fn new(limit: usize) -> Self {
        Self {
            bytes: Vec::new(),
            full: false,
            limit,
        }
    }
}

impl io::Write for Limited {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.bytes.len() + bytes.len() > self.limit {
            self.full = true;
            return Err(io::Error::other("the output limit is reached"));
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
