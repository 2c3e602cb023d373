/*
 * old_kernel ENOSYS|EPERM PROGRAM ARGUMENT...: runs a program on what looks like Linux 3.10 to it.
 *
 * A filter refuses every system call that came after 3.10, and advice to madvise and orders to fcntl that it did not
 * know.  ENOSYS is what such a kernel says; EPERM is what the filter of a container says, which knows no newer calls
 * either.  clone3 is ENOSYS in both: with EPERM no glibc that knows it makes a thread, as containers have learnt.
 *
 * Ends with 77 where filters cannot be had, as under an emulator.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    UNAVAILABLE = 77,
    USAGE = 2,
    /* The last one of 3.10. */
    LAST_CALL = SYS_finit_module,
    LAST_ADVICE = 17, /* MADV_DODUMP */
    CLONE3 = 435,
    ADD_SEALS = 1033,
    GET_SEALS = 1034,
    WIPE_ON_FORK = 18,
};

#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define SKIP_UNLESS(what, value, count) BPF_JUMP(BPF_JMP | BPF_##what | BPF_K, (value), 0, (count))
#define ANSWER(error) BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (uint32_t)(error))
#define ALLOW BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

static int install(int refusal)
{
    struct sock_filter code[] = {
        LOAD(nr),
        SKIP_UNLESS(JEQ, CLONE3, 1),
        ANSWER(ENOSYS),
        SKIP_UNLESS(JGT, LAST_CALL, 1),
        ANSWER(refusal),
        SKIP_UNLESS(JEQ, SYS_madvise, 4),
        LOAD(args[2]),
        SKIP_UNLESS(JGT, LAST_ADVICE, 1),
        ANSWER(refusal == ENOSYS ? EINVAL : refusal),
        ALLOW,
        SKIP_UNLESS(JEQ, SYS_fcntl, 3),
        LOAD(args[1]),
        SKIP_UNLESS(JGE, ADD_SEALS, 1),
        ANSWER(EINVAL),
        ALLOW,
    };
    struct sock_fprog program = {.len = sizeof code / sizeof *code, .filter = code};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

/* That the filter does what this file says. */
static int refuses(int refusal)
{
    char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int advice = refusal == ENOSYS ? EINVAL : refusal;
    return page != MAP_FAILED && syscall(SYS_memfd_create, "x", 0u) == -1 && errno == refusal &&
           syscall(SYS_getrandom, page, 1, 0) == -1 && errno == refusal && syscall(CLONE3, NULL, 0) == -1 &&
           errno == ENOSYS && madvise(page, 4096, WIPE_ON_FORK) == -1 && errno == advice &&
           madvise(page, 4096, MADV_DONTFORK) == 0 && fcntl(0, GET_SEALS) == -1 && errno == EINVAL &&
           munmap(page, 4096) == 0;
}

int main(int count, char **words)
{
    if (count < 3) {
        return USAGE;
    }
    int refusal = strcmp(words[1], "EPERM") == 0 ? EPERM : ENOSYS;
    if (!install(refusal)) {
        perror("seccomp");
        return UNAVAILABLE;
    }
    if (!refuses(refusal)) {
        fputs("the filter lets through what it should not\n", stderr);
        return USAGE;
    }
    execv(words[2], &words[2]);
    perror(words[2]);
    return USAGE;
}
