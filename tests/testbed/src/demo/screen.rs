// SPDX-License-Identifier: Apache-2.0
//! What a person sees while a long thing is done: one line for each step, and on a terminal one more that moves.

use std::fmt::Display;
use std::io::{IsTerminal, Write, stdout};
use std::time::{Duration, Instant};

const PAUSE: Duration = Duration::from_millis(200);
const WHEEL: [char; 10] = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];

/// Standard output, step by step.
#[derive(Debug)]
pub(super) struct Screen {
    started: Instant,
    live: bool,
    turns: usize,
    said: String,
}

impl Screen {
    pub(super) fn new() -> Self {
        Self {
            started: Instant::now(),
            live: stdout().is_terminal(),
            turns: 0,
            said: String::new(),
        }
    }

    /// One that only has lines, also on a terminal where others write.
    pub(super) fn of_lines() -> Self {
        Self {
            live: false,
            ..Self::new()
        }
    }

    /// What is being done or waited for. On a terminal the line stays and moves; elsewhere each text is printed once.
    pub(super) fn doing(&mut self, text: impl Display) {
        let text = text.to_string();
        let time = self.time();
        if self.live {
            self.turns += 1;
            let wheel = WHEEL[self.turns % WHEEL.len()];
            // Wrapping is off for this line: it is to be overwritten.
            self.put(&format!("\r\x1b[K\x1b[?7l{time} {wheel} {text}\x1b[?7h"));
        } else if self.said != text {
            self.put(&format!("{time} … {text}\n"));
        }
        self.said = text;
    }

    /// A step is done.
    pub(super) fn done(&mut self, text: impl Display) {
        self.clear();
        self.put(&format!("{} ✓ {text}\n", self.time()));
    }

    /// Text of others, or for the end.
    pub(super) fn text(&mut self, text: impl Display) {
        self.clear();
        self.put(&format!("{text}\n"));
    }

    /// Takes the moving line away.
    pub(super) fn clear(&mut self) {
        if self.live && !self.said.is_empty() {
            self.put("\r\x1b[K");
        }
        self.said.clear();
    }

    /// Shows `text` for as long as `work` takes.
    pub(super) async fn during<T>(&mut self, text: &str, work: impl Future<Output = T>) -> T {
        let mut work = std::pin::pin!(work);
        loop {
            self.doing(text);
            if let Ok(value) = tokio::time::timeout(PAUSE, &mut work).await {
                return value;
            }
        }
    }

    fn time(&self) -> String {
        let seconds = self.started.elapsed().as_secs();
        format!("{:>4}:{:02}", seconds / 60, seconds % 60)
    }

    /// A reader who has seen enough, such as `head`, is not a failure.
    fn put(&self, text: &str) {
        let mut out = stdout().lock();
        let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    }
}
