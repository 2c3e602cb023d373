//! The JSON of a session, from a client of any kind.

use msprof_agent_core::control::wire::PARAMS_TEXT_MAX;
use msprof_agent_core::params::{Fill, Params, SampleFill};
use serde_json::{Map, Value};

pub fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let Ok(mut params) = Params::parse(text) else {
        return;
    };
    params.result_dir();
    params.storage_limit_mb();
    params.client_pid();
    params.announcement();
    params.switches();
    params.selection();
    for host in [true, false] {
        let sample = params.sample_json(&SampleFill {
            devices: "64",
            host,
            result_dir: "/out/PROF_1",
            pid: 7,
        });
        let object: Map<String, Value> = serde_json::from_str(&sample).expect("an object");
        assert!(!object.is_empty() && !sample.contains('\n'));
    }
    let component = params.component_json(&Fill {
        result_dir: "/out",
        devices: "0,1",
        host_sys_pid: 7,
        job_id: "0",
    });
    assert!(component.len() <= PARAMS_TEXT_MAX);
    serde_json::from_str::<Map<String, Value>>(&component).expect("an object");
    if let Ok(text) = params.to_wire_text() {
        assert_eq!(Params::parse(&text).as_ref(), Ok(&params));
    }
    params.set_result_dir("/elsewhere");
    params.remove_announcement();
    assert!(params.announcement().is_none());
    assert_eq!(params.result_dir(), Some("/elsewhere"));
}
