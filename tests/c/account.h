/* An account where a death of the process cannot take it: in a file that it has mapped. */
#ifndef ACCOUNT_H
#define ACCOUNT_H

#include <fcntl.h>
#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>

/* The file, all zero, with so many bytes; NULL if that cannot be had. */
static inline void *map_account(const char *path, size_t size)
{
    int file = open(path, O_RDWR | O_CREAT, 0600);
    if (file < 0 || ftruncate(file, (off_t)size) != 0) {
        return NULL;
    }
    void *account = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    return account == MAP_FAILED ? NULL : account;
}

#endif
