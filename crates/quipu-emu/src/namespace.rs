//! Network namespaces without names, and the processes in them.
//!
//! A namespace lives as long as a file descriptor or a process is in it, and none of it is on disk: when this process
//! ends, however it does, the kernel takes it away with its interfaces.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{self, Sender};
use std::thread::{self, JoinHandle};

use nix::sched::{CloneFlags, setns, unshare};

use crate::error::EmulationError;

/// A network namespace.
#[derive(Clone, Debug)]
pub(crate) struct Namespace {
    /// The host that it is of, for messages.
    name: String,
    file: Arc<File>,
}

/// Where a host's processes run: its network namespace, and a process namespace of its own.
///
/// The first process there reads a pipe of which only this process has the other end. When this process is gone, that
/// process ends, and with it the kernel kills all others of its namespace, whoever started them.
#[derive(Debug)]
pub(crate) struct Processes {
    jobs: Option<Sender<Job>>,
    /// Ends with the first process, which is to be killed.
    thread: Option<JoinHandle<Option<Child>>>,
    /// Number of the first process, as this process sees it.
    first: u32,
}

type Job = Box<dyn FnOnce() + Send>;

impl Namespace {
    /// A new one, with a loopback interface that is down.
    pub(crate) fn new(name: &str) -> Result<Namespace, EmulationError> {
        // Only the thread that made it is in it.
        let made = thread::spawn(|| -> io::Result<File> {
            unshare(CloneFlags::CLONE_NEWNET)?;
            File::open("/proc/thread-self/ns/net")
        });
        let made = made.join().unwrap_or_else(|_| Err(io::Error::other("the thread panicked")));
        let file = made.map_err(|source| EmulationError::NoNamespaces { source })?;
        Ok(Namespace { name: name.to_owned(), file: Arc::new(file) })
    }

    /// Runs `work` on a new thread in this namespace, to which its sockets then belong.
    pub(crate) fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> JoinHandle<io::Result<T>> {
        let file = self.file.clone();
        thread::spawn(move || {
            setns(&*file, CloneFlags::CLONE_NEWNET)?;
            Ok(work())
        })
    }

    /// Moves the calling thread there.
    pub(crate) fn enter(&self) -> io::Result<()> {
        Ok(setns(&*self.file, CloneFlags::CLONE_NEWNET)?)
    }

    /// Does `work` there and waits for it.
    pub(crate) fn call<T: Send + 'static>(
        &self,
        work: impl FnOnce(&str) -> Result<T, EmulationError> + Send + 'static,
    ) -> Result<T, EmulationError> {
        let name = self.name.clone();
        let done = self.run(move || work(&name)).join().map_err(|_| EmulationError::Ended)?;
        done.map_err(EmulationError::system("enter a network namespace"))?
    }
}

impl Processes {
    /// Nothing but the first process runs.
    pub(crate) fn new(namespace: &Namespace) -> Result<Processes, EmulationError> {
        let (jobs, list) = mpsc::channel::<Job>();
        let (ready, first) = mpsc::channel();
        let file = namespace.file.clone();
        let thread = thread::spawn(move || {
            let child = match first_process(&file) {
                Ok(child) => child,
                Err(error) => {
                    let _ = ready.send(Err(error));
                    return None;
                }
            };
            let _ = ready.send(Ok(child.id()));
            for job in list {
                job();
            }
            Some(child)
        });
        let first = first.recv().map_err(|_| EmulationError::Ended)??;
        Ok(Processes { jobs: Some(jobs), thread: Some(thread), first })
    }

    /// The number of a process that is in both namespaces for as long as they last.
    pub(crate) fn first(&self) -> u32 {
        self.first
    }

    /// Does `work` on a thread whose new processes are in both namespaces.
    pub(crate) fn call<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> io::Result<T> {
        let ended = || io::Error::other("the host has been stopped");
        let (answer, answered) = mpsc::channel();
        let job = move || {
            let _ = answer.send(work());
        };
        let jobs = self.jobs.as_ref().ok_or_else(ended)?;
        jobs.send(Box::new(job)).map_err(|_| ended())?;
        answered.recv().map_err(|_| ended())
    }

    /// Starts a process there.
    pub(crate) fn spawn(&self, mut command: Command) -> io::Result<Child> {
        self.call(move || command.spawn())?
    }
}

impl Drop for Processes {
    fn drop(&mut self) {
        self.jobs = None;
        let first = self.thread.take().and_then(|thread| thread.join().ok()?);
        if let Some(mut first) = first {
            let _ = first.kill();
            // Its end takes as long as somebody holds a child of this namespace without having waited for it.
            thread::spawn(move || first.wait());
        }
    }
}

/// Moves the calling thread into a network namespace, and its children to come into a new process namespace, of which
/// the first one is returned.
fn first_process(network: &File) -> Result<Child, EmulationError> {
    setns(network, CloneFlags::CLONE_NEWNET)
        .map_err(EmulationError::system("enter a network namespace"))?;
    unshare(CloneFlags::CLONE_NEWPID)
        .map_err(EmulationError::system("make a process namespace"))?;
    Command::new("cat")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|source| EmulationError::NoProgram {
            program: "cat",
            package: "coreutils",
            source,
        })
}

/// Runs `ip` with a list of commands, in the namespaces of the calling thread.
pub(crate) fn ip(host: &str, commands: &str) -> Result<(), EmulationError> {
    let run = |program: &str| {
        Command::new(program)
            .args(["-batch", "-"])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
    };
    // Where some systems have it that do not tell ordinary users of the folder.
    let child = run("ip").or_else(|error| run("/usr/sbin/ip").map_err(|_| error));
    let missing = |source| EmulationError::NoProgram { program: "ip", package: "iproute2", source };
    let mut child = child.map_err(missing)?;
    if let Some(mut input) = child.stdin.take() {
        // If it fails, the program has ended, and says why.
        let _ = input.write_all(commands.as_bytes());
    }
    let output = child.wait_with_output().map_err(missing)?;
    if output.status.success() {
        return Ok(());
    }
    let message = String::from_utf8_lossy(&output.stderr).trim().replace('\n', "; ");
    Err(EmulationError::Ip { host: host.to_owned(), message })
}

/// Sets a setting of the kernel in the namespace of the calling thread. One that the kernel does not have stays as it is.
pub(crate) fn set(
    host: &str,
    setting: &'static str,
    value: &'static str,
) -> Result<(), EmulationError> {
    let path = Path::new("/proc/sys").join(setting);
    match fs::read_to_string(&path) {
        // Where files of settings may not be written they may be right.
        Ok(found) if found.trim() == value => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        _ => fs::write(&path, value).map_err(|source| {
            let host = host.to_owned();
            EmulationError::Setting { host, setting, value, source }
        }),
    }
}
