// SPDX-License-Identifier: Apache-2.0
//! Tests when maintenance windows open and close, also when clocks change.

use super::*;

fn window(schedule: &str, duration: &str, zone: &str) -> MaintenanceWindow {
    MaintenanceWindow {
        schedule: schedule.into(),
        duration: duration.into(),
        time_zone: zone.into(),
    }
}

fn at(time: &str) -> Timestamp {
    time.parse().expect("a time")
}

/// `open until TIME` or `opens TIME`.
fn shown(windows: &[MaintenanceWindow], now: &str) -> String {
    match standing(windows, at(now)) {
        Ok(Some(Standing::Open { until, .. })) => format!("open until {until}"),
        Ok(Some(Standing::Closed { opens, .. })) => format!("opens {opens}"),
        Ok(None) => "no windows".into(),
        Err(error) => error.to_string(),
    }
}

#[test]
fn window_is_open_from_its_time_for_its_duration() {
    let nights = [window("0 2 * * SAT", "2h", "UTC")];
    for (now, expected) in [
        ("2026-01-02T23:00:00Z", "opens 2026-01-03T02:00:00Z"),
        ("2026-01-03T01:59:59.999Z", "opens 2026-01-03T02:00:00Z"),
        ("2026-01-03T02:00:00Z", "open until 2026-01-03T04:00:00Z"),
        ("2026-01-03T03:59:59Z", "open until 2026-01-03T04:00:00Z"),
        ("2026-01-03T04:00:00Z", "opens 2026-01-10T02:00:00Z"),
    ] {
        assert_eq!(shown(&nights, now), expected, "{now}");
    }
    assert_eq!(shown(&[], "2026-01-01T00:00:00Z"), "no windows");
}

/// The one that is open longest, and else the one that opens first; one that opens again before it closes goes on.
#[test]
fn windows_of_a_list_and_of_one_schedule_overlap() {
    let two = [window("0 2 * * *", "1h", "UTC"), window("30 2 * * *", "3h", "UTC")];
    let always = [window("* * * * *", "30m", "UTC")];
    for (windows, now, expected) in [
        (&two[..], "2026-01-03T01:00:00Z", "opens 2026-01-03T02:00:00Z"),
        (&two, "2026-01-03T02:10:00Z", "open until 2026-01-03T03:00:00Z"),
        (&two, "2026-01-03T02:40:00Z", "open until 2026-01-03T05:30:00Z"),
        (&two, "2026-01-03T05:30:00Z", "opens 2026-01-04T02:00:00Z"),
        (&always, "2026-01-03T05:30:42Z", "open until 2026-01-03T06:00:00Z"),
    ] {
        assert_eq!(shown(windows, now), expected, "{now}");
    }
}

/// 2026-03-29 has no 02:30 in Berlin, 2026-10-25 has it twice; in Lord Howe clocks change by half an hour, in Apia a day is missing.
#[test]
fn window_opens_once_for_each_local_time_also_when_clocks_change() {
    let berlin = [window("30 2 * * *", "30m", "Europe/Berlin")];
    let often = [window("*/30 * * * *", "5m", "Europe/Berlin")];
    let lord_howe = [window("15 2 * * *", "10m", "Australia/Lord_Howe")];
    let lord_howe_early = [window("45 1 * * *", "10m", "Australia/Lord_Howe")];
    let apia = [window("0 12 30 * *", "1h", "Pacific/Apia")];
    for (windows, now, expected) in [
        (&berlin, "2026-03-28T12:00:00Z", "opens 2026-03-29T01:00:00Z"),
        (&berlin, "2026-03-29T01:00:00Z", "open until 2026-03-29T01:30:00Z"),
        (&berlin, "2026-03-29T01:30:00Z", "opens 2026-03-30T00:30:00Z"),
        (&berlin, "2026-10-24T12:00:00Z", "opens 2026-10-25T00:30:00Z"),
        (&berlin, "2026-10-25T00:45:00Z", "open until 2026-10-25T01:00:00Z"),
        // The second 02:30.
        (&berlin, "2026-10-25T01:30:00Z", "opens 2026-10-26T01:30:00Z"),
        (&often, "2026-03-29T00:59:00Z", "opens 2026-03-29T01:00:00Z"),
        (&often, "2026-03-29T01:06:00Z", "opens 2026-03-29T01:30:00Z"),
        (&often, "2026-10-25T01:01:00Z", "opens 2026-10-25T02:00:00Z"),
        (&lord_howe, "2026-10-03T15:00:00Z", "opens 2026-10-03T15:30:00Z"),
        (&lord_howe_early, "2026-04-04T14:00:00Z", "opens 2026-04-04T14:45:00Z"),
        (&lord_howe_early, "2026-04-04T15:00:00Z", "opens 2026-04-05T15:15:00Z"),
        (&apia, "2011-12-01T00:00:00Z", "opens 2011-12-30T10:00:00Z"),
    ] {
        assert_eq!(shown(windows, now), expected, "{now}");
    }
    // A duration is time that passes, whatever clocks show.
    let long = [window("0 1 * * *", "3h", "Europe/Berlin")];
    assert_eq!(shown(&long, "2026-03-29T00:00:00Z"), "open until 2026-03-29T03:00:00Z");
    assert_eq!(shown(&long, "2026-10-25T00:00:00Z"), "open until 2026-10-25T02:00:00Z");
}

/// Nothing is remembered, so a clock that was wrong leaves nothing behind.
#[test]
fn answer_depends_on_the_clock_of_now_alone() {
    let nights = [window("0 2 * * *", "1h", "America/New_York")];
    let (before, within, after) = ("2026-07-01T05:59:00Z", "2026-07-01T06:30:00Z", "2026-07-01T07:00:00Z");
    for now in [before, after, within, before, within, after, before] {
        let expected = match now {
            _ if now == within => "open until 2026-07-01T07:00:00Z",
            _ if now == before => "opens 2026-07-01T06:00:00Z",
            _ => "opens 2026-07-02T06:00:00Z",
        };
        assert_eq!(shown(&nights, now), expected, "{now}");
    }
}

/// One that cannot be read is never an open one, whatever the others are.
#[test]
fn window_that_cannot_be_read_is_named_with_what_is_wrong() {
    let good = window("* * * * *", "1h", "UTC");
    for (bad, expected) in [
        (
            window("", "1h", "UTC"),
            "schedule \"\" cannot be read: it has 0 fields instead of 5",
        ),
        (
            window("0 2 * * * Europe/Berlin", "1h", "UTC"),
            "schedule \"0 2 * * * Europe/Berlin\" cannot be read: it has 6 fields instead of 5",
        ),
        (
            window("61 2 * * *", "1h", "UTC"),
            "schedule \"61 2 * * *\" cannot be read: value must be in range 0..=59; found 61",
        ),
        (window("0 2 * * *", "1h", "Mars/Olympus"), "there is no time zone \"Mars/Olympus\""),
        (window("0 2 * * *", "1h", ""), "there is no time zone \"\""),
        (
            window("0 2 * * *", "0s", "UTC"),
            "duration \"0s\" is not a duration longer than zero",
        ),
        (
            window("0 2 * * *", "-1h", "UTC"),
            "duration \"-1h\" is not a duration longer than zero",
        ),
        (
            window("0 2 * * *", "soon", "UTC"),
            "duration \"soon\" is not a duration longer than zero",
        ),
        (
            window("0 2 30 2 *", "1h", "UTC"),
            "no time within the next four years matches schedule \"0 2 30 2 *\"",
        ),
    ] {
        let error = standing(&[good.clone(), bad], at("2026-01-01T00:00:00Z")).expect_err("it cannot be read");
        assert_eq!(error.to_string(), format!("spec.maintenanceWindows[1]: {expected}"));
        assert!(error.remedy().is_some_and(|remedy| remedy.ends_with('.')), "{error}");
    }
}

/// The leap day is rare and not never.
#[test]
fn window_of_the_leap_day_opens() {
    let leap = [window("0 0 29 2 *", "1h", "Asia/Kolkata")];
    assert_eq!(shown(&leap, "2026-01-01T00:00:00Z"), "opens 2028-02-28T18:30:00Z");
}
