// SPDX-License-Identifier: Apache-2.0
//! What is asked of a vCenter, against sockets that misbehave and a simulated vCenter.
#![allow(missing_docs, reason = "tests")]

mod accounts;
mod budget;
mod cluster_id;
mod connection_faults;
mod file_service;
mod fixes;
mod probe;
mod real_vcenter;
mod report;
mod session;
mod testbed_oracle;
mod testbed_soap;
mod testbed_vcenter;
mod vcenter_job;
