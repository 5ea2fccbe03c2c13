// SPDX-License-Identifier: Apache-2.0
//! Counts the elements and bytes of a document while the XML reader parses it, and stops the reader at the limits.

use super::inspection_limits::Held;
use super::offload::{Unread, Work};

/// How many elements are kept at once. Items of a long list are handed over one by one and do not count together; the largest item is a
/// machine with all of its networks, some thousand elements.
pub(super) const MAX_ELEMENTS: usize = 50_000;
/// Steps after which it is asked whether to go on.
const STEPS: usize = 1024;
/// Memory that is taken at once.
const PORTION: usize = 64 << 10;

/// Counts what is kept of a document.
pub(super) struct Meter<'a> {
    work: &'a Work,
    held: Held,
    steps: usize,
    new: usize,
    elements: usize,
    bytes: usize,
}

impl<'a> Meter<'a> {
    /// Nothing yet.
    pub(super) fn new(work: &'a Work) -> Self {
        Self {
            work,
            held: work.hold(),
            steps: 0,
            new: 0,
            elements: 0,
            bytes: 0,
        }
    }

    /// One step of the reader.
    pub(super) fn step(&mut self) -> Result<(), Unread> {
        self.steps += 1;
        if self.steps.is_multiple_of(STEPS) {
            self.work.go_on()?;
            self.count()?;
        }
        Ok(())
    }

    fn count(&mut self) -> Result<(), Unread> {
        Ok(self.work.budget.elements(std::mem::take(&mut self.new))?)
    }

    /// An element that takes so many bytes.
    pub(super) fn element(&mut self, bytes: usize) -> Result<(), Unread> {
        (self.new, self.elements) = (self.new + 1, self.elements + 1);
        if self.elements > MAX_ELEMENTS {
            return Err(format!("the answer has more than {MAX_ELEMENTS} XML elements").into());
        }
        self.text(bytes)
    }

    /// So many bytes of text.
    pub(super) fn text(&mut self, bytes: usize) -> Result<(), Unread> {
        self.bytes += bytes;
        if let Some(more) = self.bytes.checked_sub(self.held.bytes()).filter(|more| *more > 0) {
            self.held.grow(more.max(PORTION))?;
        }
        Ok(())
    }

    /// So many elements and bytes were handed on.
    pub(super) fn handed_over(&mut self, (elements, bytes): (usize, usize)) {
        self.elements -= elements;
        self.bytes = self.bytes.saturating_sub(bytes);
    }

    /// The memory of what is left.
    pub(super) fn finish(mut self) -> Result<Held, Unread> {
        self.count()?;
        Ok(self.held)
    }
}
