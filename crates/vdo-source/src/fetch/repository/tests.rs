// SPDX-License-Identifier: Apache-2.0
use super::*;
use vdo_api::api::Reason;
use vdo_api::types::ChartRef;

fn indexed(folder: &std::path::Path, version: u32) {
    let text =
        format!(r#"{{"apiVersion": "vdo.vmware.com/matrix/v1", "kind": "CompatibilityMatrix", "version": {version}, "drivers": {{}}}}"#);
    std::fs::write(folder.join("index.yaml"), text).expect("a file");
}

#[tokio::test]
async fn matrix_index_same_bytes_parsed_once_and_new_bytes_seen() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let repository = ChartRepository::new(MatrixSource::Local(folder.path().to_owned()));
    indexed(folder.path(), 1);
    let first = repository.index(&Records::default()).await?;
    assert!(Arc::ptr_eq(&first.index, &repository.index(&Records::default()).await?.index));
    indexed(folder.path(), 2);
    let second = repository.index(&Records::default()).await?;
    assert_eq!((first.index.version, second.index.version), (1, 2));
    assert_ne!(first.digest, second.digest);
    Ok(())
}

#[tokio::test]
async fn matrix_index_unreadable_keeps_last_good_and_reports_problem() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let repository = ChartRepository::new(MatrixSource::Local(folder.path().to_owned()));
    indexed(folder.path(), 2);
    let second = repository.index(&Records::default()).await?;
    std::fs::write(folder.path().join("index.yaml"), "drivers: [")?;
    let kept = repository.index(&Records::default()).await?;
    assert!(Arc::ptr_eq(&kept.index, &second.index), "a broken index takes no place");
    assert_eq!(
        kept.problem.map(|problem| problem.reason),
        Some(Reason::MatrixInvalid),
        "and is not hidden"
    );
    std::fs::remove_file(folder.path().join("index.yaml"))?;
    let problem = repository
        .index(&Records::default())
        .await?
        .problem
        .map(|problem| problem.message)
        .unwrap_or_default();
    assert!(problem.contains("index.yaml"), "{problem}");
    indexed(folder.path(), 3);
    let third = repository.index(&Records::default()).await?;
    assert_eq!((third.index.version, third.problem), (3, None));
    Ok(())
}

#[tokio::test]
async fn matrix_index_missing_without_earlier_one_is_error() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    indexed(folder.path(), 0);
    let fresh = ChartRepository::new(MatrixSource::Local(folder.path().join("nothing.yaml")));
    assert!(
        fresh.index(&Records::default()).await.is_err(),
        "without one before there is nothing to keep"
    );
    Ok(())
}

#[tokio::test]
async fn chart_cache_same_digest_opened_once_and_size_bounded() -> Result<(), Box<dyn std::error::Error>> {
    let repository = ChartRepository::new(MatrixSource::Embedded);
    let loaded = repository.index(&Records::default()).await?;
    let charts: Vec<&ChartRef> = loaded
        .index
        .drivers
        .values()
        .flat_map(|driver| &driver.versions)
        .map(|entry| &entry.chart)
        .collect();
    let first = repository.chart(charts[0]).await?;
    assert!(Arc::ptr_eq(&first, &repository.chart(charts[0]).await?));
    for chart in &charts[..=CHARTS] {
        repository.chart(chart).await?;
    }
    assert!(lock(&repository.charts).len() <= CHARTS);
    Ok(())
}

#[tokio::test]
async fn chart_cache_known_chart_with_other_digest_is_error() -> Result<(), Box<dyn std::error::Error>> {
    let repository = ChartRepository::new(MatrixSource::Embedded);
    let loaded = repository.index(&Records::default()).await?;
    let known = &loaded.index.drivers.values().next().expect("a driver").versions[0].chart;
    repository.chart(known).await?;
    let mut other = known.clone();
    other.digest = Digest::of(b"something else");
    assert!(
        repository.chart(&other).await.is_err(),
        "a known chart does not answer for another digest"
    );
    Ok(())
}
