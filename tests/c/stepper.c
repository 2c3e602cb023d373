/*
 * stepper PROCESS THREAD STEPS: follows a thread from one change of a file to the next, and kills its process before
 * it makes the change behind so many.  Says "ready" when it follows, and then "killed" or "ended", if the thread has
 * ended before.  Ends with 77 where that is not permitted.
 */
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NOT_PERMITTED = 77, GET_SYSCALL_INFO = 0x420e, ENTRY = 1 };

/* What the kernel tells of a call; the C library has no name for it that is the same everywhere. */
struct call {
    uint8_t op;
    uint8_t pad[3];
    uint32_t arch;
    uint64_t instruction, stack, number, arguments[6];
};

static int changes_a_file(uint64_t number)
{
    static const long calls[] = {
        SYS_write, SYS_pwrite64, SYS_ftruncate, SYS_unlinkat, SYS_renameat, SYS_mkdirat,
    };
    for (unsigned i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        if (number == (uint64_t)calls[i]) {
            return 1;
        }
    }
    return 0;
}

static int says(const char *word)
{
    puts(word);
    fflush(stdout);
    return 0;
}

int main(int count, char **words)
{
    if (count != 4) {
        return 2;
    }
    pid_t process = atoi(words[1]), thread = atoi(words[2]);
    long steps = atol(words[3]);
    if (ptrace(PTRACE_SEIZE, thread, NULL, (void *)(long)PTRACE_O_TRACESYSGOOD) != 0 ||
        ptrace(PTRACE_INTERRUPT, thread, NULL, NULL) != 0) {
        return errno == EPERM ? NOT_PERMITTED : 1;
    }
    for (int following = 0;;) {
        int status;
        if (waitpid(thread, &status, __WALL) != thread || !WIFSTOPPED(status)) {
            return says("ended");
        }
        struct call call = {0};
        int signal = WSTOPSIG(status);
        if (signal == (SIGTRAP | 0x80)) {
            if (syscall(SYS_ptrace, GET_SYSCALL_INFO, thread, sizeof call, &call) < 0) {
                return NOT_PERMITTED;
            }
            if (call.op == ENTRY && changes_a_file(call.number) && steps-- == 0) {
                kill(process, SIGKILL);
                return says("killed");
            }
        }
        /* Signals of its own are handed on; stops are not. */
        int stops = signal == (SIGTRAP | 0x80) || status >> 16 != 0;
        ptrace(PTRACE_SYSCALL, thread, NULL, (void *)(long)(stops ? 0 : signal));
        if (!following) {
            following = 1;
            says("ready");
        }
    }
}
