// SPDX-License-Identifier: Apache-2.0
//! Decides whether a maintenance window is open, and when the next one opens; only then are installed drivers changed automatically.
//!
//! A schedule is read in the local time of its zone. If the zone skips a time, the window opens when the clocks go forward; if the zone has a
//! time twice, the first one counts: a window opens once for each time of its schedule. The zones are those of the binary, not of the machine.

use cronexpr::Crontab;
use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, TimeZone, TimeZoneDatabase};
use jiff::{SignedDuration, Timestamp};
use std::borrow::Cow;
use vdo_api::api::MaintenanceWindow;
use vdo_api::types::Remedy;

/// Whether automatic changes are made now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// A window is open.
    Open {
        /// Which, by its schedule and its zone.
        window: String,
        /// Until when it is, unless another one opens before.
        until: Timestamp,
    },
    /// None is.
    Closed {
        /// Which opens next.
        window: String,
        /// When.
        opens: Timestamp,
    },
}

impl Standing {
    /// When the answer may be another one.
    #[must_use]
    pub fn changes(&self) -> Timestamp {
        match self {
            Self::Open { until, .. } => *until,
            Self::Closed { opens, .. } => *opens,
        }
    }
}

/// A window that cannot be read, or never opens.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WindowError {
    /// Its schedule is none.
    #[error("spec.maintenanceWindows[{index}]: schedule {schedule:?} cannot be read: {problem}")]
    Schedule {
        /// Its place in the list.
        index: usize,
        /// The schedule.
        schedule: String,
        /// What is wrong with it.
        problem: String,
    },
    /// There is no such zone.
    #[error("spec.maintenanceWindows[{index}]: there is no time zone {zone:?}")]
    TimeZone {
        /// Its place in the list.
        index: usize,
        /// The zone.
        zone: String,
    },
    /// Its duration is none, or nothing.
    #[error("spec.maintenanceWindows[{index}]: duration {duration:?} is not a duration longer than zero")]
    Duration {
        /// Its place in the list.
        index: usize,
        /// The duration.
        duration: String,
    },
    /// No day fits its schedule.
    #[error("spec.maintenanceWindows[{index}]: no time within the next four years matches schedule {schedule:?}")]
    Never {
        /// Its place in the list.
        index: usize,
        /// The schedule.
        schedule: String,
    },
}

impl Remedy for WindowError {
    fn remedy(&self) -> Option<Cow<'static, str>> {
        Some(match self {
            Self::Schedule { .. } => {
                "Write minute, hour, day of month, month and day of week, for example \"0 2 * * SAT\"; the zone is a separate field.".into()
            }
            Self::TimeZone { .. } => "Write a name of the IANA time zone database, for example Europe/Berlin.".into(),
            Self::Duration { .. } => "Write hours and minutes, for example 2h or 1h30m.".into(),
            Self::Never { .. } => "Use a day that exists in the month.".into(),
        })
    }
}

/// A window that was read.
struct Window {
    /// In the time of its zone, which the library takes for UTC: what becomes of times that are not there, or twice, is decided here.
    schedule: Crontab,
    zone: TimeZone,
    duration: SignedDuration,
    /// As it is shown.
    shown: String,
}

/// Whether automatic changes are made at this time; `None` where there are no windows, which is always.
///
/// # Errors
/// With the first window that cannot be read or never opens. What it was to allow is not known, so nothing is.
pub fn standing(windows: &[MaintenanceWindow], now: Timestamp) -> Result<Option<Standing>, WindowError> {
    let mut open: Option<(Timestamp, String)> = None;
    let mut next: Option<(Timestamp, String)> = None;
    for (index, asked) in windows.iter().enumerate() {
        let window = Window::read(index, asked)?;
        let opens = window.after(now).ok_or_else(|| WindowError::Never {
            index,
            schedule: asked.schedule.clone(),
        })?;
        if let Some(until) = window
            .open_until(now)
            .filter(|until| open.as_ref().is_none_or(|(known, _)| until > known))
        {
            open = Some((until, window.shown.clone()));
        }
        if next.as_ref().is_none_or(|(known, _)| opens < *known) {
            next = Some((opens, window.shown));
        }
    }
    let open = open.map(|(until, window)| Standing::Open { window, until });
    Ok(open.or_else(|| next.map(|(opens, window)| Standing::Closed { window, opens })))
}

/// The fields of a schedule.
const FIELDS: usize = 5;

impl Window {
    fn read(index: usize, asked: &MaintenanceWindow) -> Result<Self, WindowError> {
        let unreadable = |problem: String| WindowError::Schedule {
            index,
            schedule: asked.schedule.clone(),
            problem,
        };
        let fields: Vec<&str> = asked.schedule.split_whitespace().collect();
        if fields.len() != FIELDS {
            return Err(unreadable(format!("it has {} fields instead of {FIELDS}", fields.len())));
        }
        let schedule = cronexpr::parse_crontab(&format!("{} UTC", fields.join(" ")));
        let schedule = schedule.map_err(|error| unreadable(problem(&error)))?;
        let zone = TimeZoneDatabase::bundled().get(&asked.time_zone);
        let zone = zone.map_err(|_| WindowError::TimeZone {
            index,
            zone: asked.time_zone.clone(),
        })?;
        let duration = asked.duration.parse::<SignedDuration>().ok();
        let duration = duration.filter(SignedDuration::is_positive).ok_or_else(|| WindowError::Duration {
            index,
            duration: asked.duration.clone(),
        })?;
        Ok(Self {
            schedule,
            duration,
            shown: format!("{:?} in {}", fields.join(" "), zone.iana_name().unwrap_or(&asked.time_zone)),
            zone,
        })
    }

    /// When it opens the next time after this one.
    fn after(&self, time: Timestamp) -> Option<Timestamp> {
        let mut local = time.to_zoned(self.zone.clone()).datetime();
        loop {
            let as_utc = TimeZone::UTC.to_timestamp(local).ok()?;
            local = self.schedule.find_next(as_utc).ok()?.datetime();
            // In the second of two equal hours the first one's times come again.
            let opens = self.instant(local)?;
            if opens > time {
                return Some(opens);
            }
        }
    }

    /// The instant of a local time.
    fn instant(&self, local: DateTime) -> Option<Timestamp> {
        match self.zone.to_ambiguous_timestamp(local).offset() {
            AmbiguousOffset::Unambiguous { offset } => offset.to_timestamp(local).ok(),
            AmbiguousOffset::Fold { before, .. } => before.to_timestamp(local).ok(),
            AmbiguousOffset::Gap { before, .. } => {
                let skipped = before.to_timestamp(local).ok()?;
                let changed = |time: Timestamp| self.zone.preceding(time).next().map(|change| change.timestamp());
                // A change at this very instant does not precede it.
                changed(skipped.checked_add(SignedDuration::from_nanos(1)).ok()?)
            }
        }
    }

    /// Until when it is open, if it is.
    fn open_until(&self, now: Timestamp) -> Option<Timestamp> {
        let begin = now.checked_sub(self.duration).ok()?;
        let mut last = self.after(begin).filter(|opened| *opened <= now)?;
        // The last time at which it opened lies between these two.
        let mut end = now;
        loop {
            let half = end.duration_since(last).checked_div(2)?;
            if half < SignedDuration::from_secs(1) {
                return last.checked_add(self.duration).ok();
            }
            let middle = last.checked_add(half).ok()?;
            match self.after(middle).filter(|opened| *opened <= now) {
                Some(opened) => last = opened,
                None => end = middle,
            }
        }
    }
}

/// What the library has to say of a schedule, without the drawing that it adds.
fn problem(error: &cronexpr::Error) -> String {
    let text = error.to_string();
    let last = text.lines().last().unwrap_or_default();
    last.trim_start_matches([' ', '^']).to_owned()
}

#[cfg(test)]
mod tests;
