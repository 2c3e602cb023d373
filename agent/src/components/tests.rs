use super::*;
use crate::clock::Moment;
use std::sync::atomic::AtomicU32;
use std::time::Duration;

/// Handlers are plain C functions, so each test has its own static log.
macro_rules! logging_handler {
    ($name:ident, $log:ident) => {
        static $log: Mutex<Vec<(u32, u64, u32, u32)>> = Mutex::new(Vec::new());
        unsafe extern "C" fn $name(kind: u32, data: *mut c_void, len: u32) -> i32 {
            assert_eq!((kind, len), (1, 5424));
            // SAFETY: the registry passes a pointer to a command.
            let command = unsafe { &*data.cast::<Command>() };
            $log.lock().push((
                command.kind,
                command.switch,
                command.device_count,
                command.device_ids[0],
            ));
            0
        }
    };
}

fn session(switch: u64) -> Session {
    Session {
        number: 1,
        switches: Switches {
            switch,
            switch_hi: 1 << 48,
        },
        params: "{\"a\":1}".into(),
    }
}

const INIT: u32 = Kind::Init as u32;
const START: u32 = Kind::Start as u32;
const STOP: u32 = Kind::Stop as u32;

#[test]
fn a_component_gets_init_at_open_and_start_and_stop_with_the_same_bits() {
    logging_handler!(handler, LOG);
    let components = Components::default();
    components.register(module::RUNTIME, handler).run_here();
    components.register(module::RUNTIME, handler).run_here();
    let (changed, delivery) = components.set_device(2, true).expect("valid id");
    assert!(changed);
    delivery.run_here();
    let (changed, delivery) = components.set_device(2, true).expect("valid id");
    assert!(!changed && delivery.is_empty());
    let undelivered = components
        .start(session(0x147))
        .run_within(Duration::from_secs(5));
    assert_eq!(undelivered, Undelivered::default());
    components.stop().run_here();
    components.stop().run_here();
    let expected = [(INIT, 0, 0, 0), (START, 0x147, 1, 2), (STOP, 0x147, 1, 2)];
    assert_eq!(*LOG.lock(), expected);
}

#[test]
fn a_late_module_and_a_late_device_are_started_once_each() {
    logging_handler!(early, EARLY);
    logging_handler!(late, LATE);
    let components = Components::default();
    components.register(module::GE, early).run_here();
    components.start(session(8)).run_here();
    assert_eq!(*EARLY.lock(), [], "no device is open yet");
    components.set_device(0, true).expect("valid").1.run_here();
    components.set_device(1, true).expect("valid").1.run_here();
    components.register(module::HCCL, late).run_here();
    let started = [
        (INIT, 0, 0, 0),
        (START, 8, 1, 0),
        (INIT, 0, 0, 0),
        (START, 8, 1, 1),
    ];
    assert_eq!(*EARLY.lock(), started);
    assert_eq!(*LATE.lock(), started);
    components.set_device(1, false).expect("valid").1.run_here();
    components.stop().run_here();
    assert_eq!(LATE.lock()[4..], [(STOP, 8, 1, 1), (STOP, 8, 1, 0)]);
}

#[test]
fn two_libraries_of_one_module_are_told_once_each_and_one_that_registers_twice_too() {
    logging_handler!(one, ONE);
    logging_handler!(other, OTHER);
    let components = Components::default();
    for handler in [one, other, one, other] {
        components.register(module::HCCL, handler).run_here();
    }
    components.set_device(0, true).expect("valid").1.run_here();
    components.start(session(8)).run_here();
    components.register(module::HCCL, one).run_here();
    components.stop().run_here();
    let expected = [(INIT, 0, 0, 0), (START, 8, 1, 0), (STOP, 8, 1, 0)];
    assert_eq!(*ONE.lock(), expected);
    assert_eq!(*OTHER.lock(), expected);
}

static ORDER: Mutex<Vec<(&'static str, u32)>> = Mutex::new(Vec::new());

macro_rules! named_handler {
    ($name:ident) => {
        unsafe extern "C" fn $name(_: u32, data: *mut c_void, _: u32) -> i32 {
            // SAFETY: the registry passes a pointer to a command.
            let command = unsafe { &*data.cast::<Command>() };
            ORDER.lock().push((stringify!($name), command.kind));
            0
        }
    };
}

#[test]
fn start_goes_down_the_layers_and_stop_comes_up() {
    named_handler!(runtime);
    named_handler!(ascendcl);
    named_handler!(ge);
    named_handler!(hccl);
    let components = Components::default();
    components.register(module::HCCL, hccl).run_here();
    components.register(module::GE, ge).run_here();
    components.register(module::ASCENDCL, ascendcl).run_here();
    components.register(module::RUNTIME, runtime).run_here();
    components.set_device(0, true).expect("valid").1.run_here();
    components.start(session(1)).run_here();
    components.stop().run_here();
    components.finalize().run_here();
    let of_kind = |kind: Kind| -> Vec<&'static str> {
        let order = ORDER.lock();
        order
            .iter()
            .filter(|entry| entry.1 == kind as u32)
            .map(|entry| entry.0)
            .collect()
    };
    assert_eq!(of_kind(Kind::Init), ["runtime", "ascendcl", "ge", "hccl"]);
    assert_eq!(of_kind(Kind::Start), ["runtime", "ascendcl", "ge", "hccl"]);
    assert_eq!(of_kind(Kind::Stop), ["ge", "ascendcl", "runtime", "hccl"]);
    assert_eq!(
        of_kind(Kind::Finalize),
        ["ge", "ascendcl", "runtime", "hccl"]
    );
}

#[test]
fn a_handler_that_hangs_is_named_and_the_others_are_still_told() {
    static RELEASE: AtomicU32 = AtomicU32::new(0);
    static HEARD: Mutex<Vec<u32>> = Mutex::new(Vec::new());
    unsafe extern "C" fn hangs(_: u32, data: *mut c_void, _: u32) -> i32 {
        // SAFETY: the registry passes a pointer to a command.
        let kind = unsafe { &*data.cast::<Command>() }.kind;
        HEARD.lock().push(kind);
        if kind == START {
            while RELEASE.load(Ordering::Acquire) == 0 {
                std::thread::yield_now();
            }
        }
        0
    }
    logging_handler!(works, LOG);
    let components = Components::default();
    components.register(module::RUNTIME, hangs).run_here();
    components.register(module::GE, works).run_here();
    components.set_device(0, true).expect("valid").1.run_here();
    let undelivered = components
        .start(session(1))
        .run_within(Duration::from_secs(2));
    assert_eq!(undelivered.modules, ["RUNTIME (7)"]);
    assert_eq!(*LOG.lock(), [(INIT, 0, 0, 0), (START, 1, 1, 0)]);
    // While it hangs nobody waits for it again, and nothing but its stop waits for it.
    let begun = Moment::now();
    assert_eq!(
        components
            .stop()
            .run_within(Duration::from_secs(60))
            .modules,
        ["RUNTIME (7)"]
    );
    for number in 2..10 {
        let undelivered = components
            .start(session(number))
            .run_within(Duration::from_secs(60));
        assert_eq!(undelivered.modules, ["RUNTIME (7)"]);
        assert_eq!(
            components.stop().run_within(Duration::from_secs(60)),
            Undelivered::default()
        );
    }
    assert!(begun.elapsed() < Duration::from_secs(30));
    assert_eq!(LOG.lock().last(), Some(&(STOP, 9, 1, 0)));
    RELEASE.store(1, Ordering::Release);
    let deadline = Moment::now() + Duration::from_secs(10);
    loop {
        let undelivered = components
            .start(session(10))
            .run_within(Duration::from_secs(5));
        components.stop().run_here();
        if undelivered == Undelivered::default() {
            break;
        }
        assert!(
            !deadline.has_come(),
            "it is told again once it has returned"
        );
    }
    let heard = HEARD.lock();
    assert_eq!(heard[..3], [INIT, START, STOP]);
    assert_eq!(heard[heard.len() - 2..], [START, STOP]);
    assert!(heard.len() <= 5, "nothing had piled up: {heard:?}");
}

#[test]
fn a_handler_may_call_back_into_the_registry() {
    static SHARED: std::sync::OnceLock<Components> = std::sync::OnceLock::new();
    logging_handler!(second, LOG);
    unsafe extern "C" fn first(_: u32, data: *mut c_void, _: u32) -> i32 {
        let components = SHARED.get().expect("set below");
        // SAFETY: the registry passes a pointer to a command.
        if unsafe { &*data.cast::<Command>() }.kind == START {
            components.register(module::GE, second).run_here();
            components.set_device(5, true).expect("valid").1.run_here();
        }
        0
    }
    let components = SHARED.get_or_init(Components::default);
    components.register(module::RUNTIME, first).run_here();
    components.set_device(0, true).expect("valid").1.run_here();
    let undelivered = components
        .start(session(3))
        .run_within(Duration::from_secs(5));
    assert_eq!(undelivered, Undelivered::default());
    let starts: Vec<u32> = LOG
        .lock()
        .iter()
        .filter(|c| c.0 == START)
        .map(|c| c.3)
        .collect();
    assert_eq!(starts, [0, 5]);
}

#[test]
fn device_ids_that_are_no_npus_command_nothing_and_others_out_of_range_are_refused() {
    let components = Components::default();
    let (changed, delivery) = components
        .set_device(NOT_AN_NPU | 3, true)
        .expect("ignored");
    assert!(!changed && delivery.is_empty());
    assert_eq!(
        components.set_device(64, true).err(),
        Some(ComponentError::Device(64))
    );
    assert!(components.devices().is_empty());
}
