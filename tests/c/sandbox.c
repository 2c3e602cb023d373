/*
 * sandbox LIBRARY PROGRAM [WORD...]: runs a program with LIBRARY preloaded where the kernel answers EPERM to what a
 * strict container may forbid: memory files, watches on files, scheduling, hints about memory and files, names of
 * threads, newer forms of calls that have an older one.
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define ANSWER(what) BPF_STMT(BPF_RET | BPF_K, (what))
#define FORBIDDEN ANSWER(SECCOMP_RET_ERRNO | EPERM)
#define ALLOWED ANSWER(SECCOMP_RET_ALLOW)
/* One call, whatever its arguments. */
#define FORBID(call) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_##call, 0, 1), FORBIDDEN
/* One call with that number in an argument, by its low half; the call's number is loaded again for the next. */
#define FORBID_WITH(call, argument, number)                                                        \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_##call, 0, 4), LOAD(args[argument]),                  \
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (number), 0, 1), FORBIDDEN, LOAD(nr)

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif

int main(int count, char **words)
{
    struct sock_filter rules[] = {
        LOAD(nr),
        FORBID(memfd_create),
        FORBID(inotify_init1),
        FORBID(inotify_add_watch),
        FORBID(sched_yield),
        FORBID(sched_getaffinity),
        FORBID(sched_setaffinity),
        FORBID(sched_setscheduler),
        FORBID(sched_getparam),
        FORBID(sync_file_range),
        FORBID(fallocate),
        FORBID(fadvise64),
        FORBID(getrandom),
        FORBID(mincore),
        FORBID(mbind),
        FORBID(setpriority),
        FORBID(eventfd2),
        FORBID(splice),
        FORBID(statx),
        FORBID(openat2),
        FORBID(close_range),
        FORBID(copy_file_range),
        FORBID(renameat2),
        FORBID(faccessat2),
        FORBID_WITH(madvise, 2, MADV_WIPEONFORK),
        FORBID_WITH(madvise, 2, MADV_DONTFORK),
        FORBID_WITH(madvise, 2, MADV_HUGEPAGE),
        FORBID_WITH(madvise, 2, MADV_NOHUGEPAGE),
        FORBID_WITH(madvise, 2, MADV_DONTDUMP),
        FORBID_WITH(madvise, 2, MADV_REMOVE),
        FORBID_WITH(prctl, 0, PR_SET_NAME),
        FORBID_WITH(prctl, 0, 0x41555856), /* PR_GET_AUXV */
        ALLOWED,
    };
    struct sock_fprog filter = {.len = sizeof rules / sizeof *rules, .filter = rules};
    if (count < 3 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0) {
        perror("sandbox");
        return 2;
    }
    (void)setenv("LD_PRELOAD", words[1], 1);
    (void)execv(words[2], words + 2);
    perror(words[2]);
    return 2;
}
