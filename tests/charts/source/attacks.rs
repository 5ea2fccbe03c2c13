// SPDX-License-Identifier: Apache-2.0
//! Each attack by its name. Whatever is tried, the last good index stays, and the reason is given.

use super::{INDEX, Publisher, Site, index, package, reported};
use crate::attacks::{Victim, attacks};
use anyhow::{Context as _, Result};
use std::sync::Arc;
use std::time::{Duration, Instant};
use vdo_api::types::{ChartRef, Digest};
use vdo_core::matrix::{StoredMatrix, UpdatePolicy};
use vdo_source::fetch::{ChartRepository, Floor, Records};
use vdo_testbed::WebAnswer;

/// A site whose index of version 7 is signed by a key that its client trusts, and was used.
async fn signed() -> Result<(Site, Publisher, ChartRepository)> {
    let (site, key) = (Site::start().await?, Publisher::new()?);
    site.publish(&index(7), &key)?;
    let repository = site.repository(Some(site.trust(&[&key])?));
    let (_, loaded) = site.look(&repository).await;
    assert_eq!(loaded?.signer.map(|signer| signer.to_string()), Some(key.fingerprint()));
    Ok((site, key, repository))
}

/// Asks again: version 7 stays, for this reason and with these words.
async fn refused(site: &Site, repository: &ChartRepository, reason: &str, said: &str) -> Result<()> {
    let (_, loaded) = site.look(repository).await;
    let loaded = loaded?;
    assert_eq!(loaded.index.version, 7, "another index is used");
    let problem = loaded.problem.with_context(|| format!("{said}: no problem"))?;
    assert_eq!(problem.reason.as_str(), reason, "{}", problem.message);
    assert!(problem.message.contains(said), "{said}: {}", problem.message);
    Ok(())
}

/// Tries all attacks of this name that consist of files.
async fn tries(name: &str, (site, key, repository): &(Site, Publisher, ChartRepository)) -> Result<()> {
    let stranger = Publisher::new()?;
    let victim = Victim {
        index: &index,
        version: 7,
        sign: &|text| key.sign(text),
        stranger: &|text| stranger.sign(text),
    };
    let mut all = attacks(&victim)?;
    all.retain(|attack| attack.name == name);
    assert!(!all.is_empty(), "there is no attack {name}");
    for attack in all {
        site.server.put(INDEX, attack.index);
        match attack.signature {
            Some(signature) => site.server.put(&format!("{INDEX}.sig"), signature),
            None => site.server.remove(&format!("{INDEX}.sig")),
        }
        refused(site, repository, attack.reason, &attack.said).await?;
    }
    Ok(())
}

#[tokio::test]
async fn attack_arbitrary_software_is_refused() -> Result<()> {
    let all = signed().await?;
    tries("arbitrary software", &all).await?;
    let (site, _, repository) = all;
    // A chart with other bytes than the index promises is not opened, wherever it is.
    let bytes = package()?;
    site.server.put("/matrix/charts/one.tgz", bytes.clone());
    let chart = ChartRef {
        urls: vec!["charts/one.tgz".into()],
        digest: Digest::of(b"another"),
    };
    let error = repository.chart(&chart).await.err().context("it was opened")?;
    assert!(reported(&error).starts_with("DigestMismatch"), "{}", reported(&error));
    Ok(())
}

#[tokio::test]
async fn attack_rollback_is_refused_also_after_a_restart_and_without_records() -> Result<()> {
    let all = signed().await?;
    tries("rollback", &all).await?;
    let (site, key, repository) = all;
    // An operator that has just started knows what was used by the status and the inventory; either is enough.
    let floor = Floor {
        source: repository.to_string(),
        version: 7,
        signer: Some(key.fingerprint()),
    };
    let kept = {
        let text = index(7);
        let signature = key.sign(text.as_bytes())?;
        let identity = (repository.to_string(), 7, Some(key.fingerprint()));
        Arc::new(StoredMatrix::of(
            identity,
            (text.as_bytes(), Some(signature.as_bytes()), None),
            [].into(),
        ))
    };
    let restarted = site.repository(Some(site.trust(&[&key])?));
    restarted.poll().await;
    let only_status = Records {
        floors: vec![floor.clone()],
        ..Records::default()
    };
    let error = restarted.index(&only_status).await.err().context("it was used")?;
    assert!(
        reported(&error).starts_with("MatrixRolledBack") && reported(&error).contains("accept-matrix-version=6"),
        "{}",
        reported(&error)
    );
    let both = Records {
        kept: Some(kept),
        ..only_status.clone()
    };
    let loaded = restarted.index(&both).await?;
    assert_eq!(
        (loaded.index.version, loaded.problem.map(|problem| problem.reason.as_str())),
        (7, Some("MatrixRolledBack"))
    );
    // A person may accept exactly this version.
    let pardoned = |version| Records {
        pardoned: Some(version),
        ..both.clone()
    };
    assert!(restarted.index(&pardoned(5)).await?.problem.is_some());
    let loaded = restarted.index(&pardoned(6)).await?;
    assert_eq!((loaded.index.version, loaded.problem), (6, None));
    Ok(())
}

#[tokio::test]
async fn attack_fast_forward_is_recovered_from_by_revoking_the_key() -> Result<()> {
    let all = signed().await?;
    tries("fast-forward", &all).await?;
    let (site, stolen, repository) = all;
    site.publish(&index(u64::MAX), &stolen)?;
    let (_, loaded) = site.look(&repository).await;
    assert_eq!(loaded?.index.version, u64::MAX, "a trusted key may count as it likes");
    let new = Publisher::new()?;
    site.trust(&[&new])?;
    site.publish(&index(8), &new)?;
    let (_, loaded) = site.look(&repository).await;
    let loaded = loaded?;
    assert_eq!((loaded.index.version, loaded.problem), (8, None));
    // What was recorded under the stolen key counts no more, also after a restart.
    let restarted = site.repository(Some(site.trust(&[&new])?));
    restarted.poll().await;
    let records = Records {
        floors: vec![Floor {
            source: repository.to_string(),
            version: u64::MAX,
            signer: Some(stolen.fingerprint()),
        }],
        ..Records::default()
    };
    assert_eq!(restarted.index(&records).await?.index.version, 8);
    Ok(())
}

/// What a mirror holds back becomes stale by the date in the signed index, and a clock that is set back is noticed.
#[tokio::test]
async fn attack_freeze_ends_upgrades_when_the_index_expires_or_the_clock_is_set_back() -> Result<()> {
    let (site, key, repository) = signed().await?;
    let dated = index(8).replace(
        "\"drivers\"",
        "\"generated\": \"2026-11-01T00:00:00Z\", \"expires\": \"2026-12-01T00:00:00Z\", \"drivers\"",
    );
    site.publish(&dated, &key)?;
    let index = site.look(&repository).await.1?.index;
    for (now, frozen) in [
        ("2026-11-02T00:00:00Z", false),
        ("2026-12-02T00:00:00Z", true),
        ("2020-01-01T00:00:00Z", true),
    ] {
        let policy = index.policy(UpdatePolicy::Latest, now.parse()?);
        assert_eq!(policy == UpdatePolicy::Frozen, frozen, "{now}");
    }
    Ok(())
}

#[tokio::test]
async fn attack_mix_and_match_is_refused() -> Result<()> {
    tries("mix-and-match", &signed().await?).await
}

#[tokio::test]
async fn attack_endless_data_is_broken_off() -> Result<()> {
    let all = signed().await?;
    tries("endless data", &all).await?;
    let (site, key, repository) = all;
    site.server.answer(|asked| match asked.path == INDEX {
        true => WebAnswer::Endless,
        false => WebAnswer::File,
    });
    refused(&site, &repository, "MatrixUnreachable", "larger than 12582912 bytes").await?;
    site.server.answer(|asked| match asked.path == INDEX {
        true => WebAnswer::Bomb(200 << 20),
        false => WebAnswer::File,
    });
    refused(&site, &repository, "MatrixUnreachable", "larger than 12582912 bytes").await?;
    site.publish(&index(7), &key)?;
    let again = site.repository(None);
    site.server.answer(|asked| match asked.path == INDEX {
        true => WebAnswer::File,
        false => WebAnswer::Endless,
    });
    let polled = again.poll().await;
    let problem = polled.problem.context("an endless signature")?;
    assert!(problem.message.contains("larger than 65536 bytes"), "{}", problem.message);
    Ok(())
}

#[tokio::test]
async fn attack_slow_retrieval_is_broken_off() -> Result<()> {
    let (site, _, repository) = signed().await?;
    for answer in [WebAnswer::Silence, WebAnswer::Trickle(Duration::from_millis(100))] {
        site.server.put(INDEX, "#".repeat(1 << 20));
        let start = Instant::now();
        site.server.answer(move |_| answer.clone());
        refused(&site, &repository, "MatrixUnreachable", "too slowly").await?;
        assert!(start.elapsed() < Duration::from_secs(60), "it was waited for {:?}", start.elapsed());
    }
    Ok(())
}

#[tokio::test]
async fn attack_broken_connection_is_refused() -> Result<()> {
    let (site, key, repository) = signed().await?;
    site.publish(&index(8), &key)?;
    site.server.answer(|_| WebAnswer::Cut);
    refused(&site, &repository, "MatrixUnreachable", "did not answer properly").await
}

/// An index that is not signed cannot bring in a driver that nothing asks for, nor need one.
#[tokio::test]
async fn attack_extraneous_dependencies_is_refused() -> Result<()> {
    tries("extraneous dependencies", &signed().await?).await
}

/// A mirror has only what the publisher has signed, or nothing.
#[tokio::test]
async fn attack_malicious_mirror_cannot_change_a_chart() -> Result<()> {
    let (site, _, repository) = signed().await?;
    let mirror = Site::start().await?;
    site.credential("ca.crt", &(site.server.authority().pem() + &mirror.server.authority().pem()))?;
    let (good, mut bad) = (package()?, package()?);
    bad.extend(b"more");
    mirror.server.put("/one.tgz", bad);
    site.server.put("/matrix/charts/one.tgz", good.clone());
    let chart = ChartRef {
        urls: vec![mirror.server.url("/one.tgz"), "charts/one.tgz".into()],
        digest: Digest::of(&good),
    };
    repository.chart(&chart).await?;
    assert_eq!(mirror.server.asked().len(), 1, "the mirror was asked first");
    Ok(())
}

/// What is signed is a chart by its digest, so another driver's chart under its name is another digest.
#[tokio::test]
async fn attack_wrong_software_is_refused() -> Result<()> {
    let (site, _, repository) = signed().await?;
    let (wanted, other) = (
        package()?,
        vdo_source::fetch::embedded::sources()
            .remove(vdo_core::drivers::CSI)
            .context("a source")?,
    );
    let version = other.versions().last().context("a version")?.clone();
    site.server
        .put("/matrix/charts/one.tgz", vdo_core::chart::package(&other, &version)?);
    let chart = ChartRef {
        urls: vec!["charts/one.tgz".into()],
        digest: Digest::of(&wanted),
    };
    let error = repository.chart(&chart).await.err().context("it was opened")?;
    assert!(reported(&error).starts_with("DigestMismatch"), "{}", reported(&error));
    Ok(())
}

#[tokio::test]
async fn attack_key_compromise_ends_with_the_revocation_of_the_key() -> Result<()> {
    let (site, stolen, repository) = signed().await?;
    let new = Publisher::new()?;
    // Both are trusted while publishers change keys; then only the new one.
    site.trust(&[&stolen, &new])?;
    assert_eq!(site.look(&repository).await.1?.problem, None);
    site.trust(&[&new])?;
    // Nothing that the server has is another, and still there is something to decide: the verdict is.
    assert!(repository.poll().await.news, "the revocation of a key is no news");
    refused(&site, &repository, "MatrixNotTrusted", "trusted key").await?;
    // The same index, signed again: nothing of its bytes changes, and the server reports it.
    site.server.put(&format!("{INDEX}.sig"), new.sign(index(7).as_bytes())?);
    let (polled, loaded) = site.look(&repository).await;
    let loaded = loaded?;
    assert_eq!((polled.problem, loaded.problem), (None, None));
    assert_eq!(loaded.signer.map(|signer| signer.to_string()), Some(new.fingerprint()));
    site.publish(&index(8), &stolen)?;
    refused(&site, &repository, "MatrixNotTrusted", "trusted key").await
}

#[tokio::test]
async fn attack_signature_over_different_bytes_is_refused() -> Result<()> {
    tries("signature over different bytes", &signed().await?).await
}
