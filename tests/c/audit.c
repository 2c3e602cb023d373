/* An auditor of the loader (LD_AUDIT) that listens to everything and changes nothing. */
#define _GNU_SOURCE
#include <link.h>
#include <stddef.h>

unsigned int la_version(unsigned int version)
{
    return version;
}

unsigned int la_objopen(struct link_map *map, Lmid_t namespace, uintptr_t *cookie)
{
    (void)map;
    (void)namespace;
    (void)cookie;
    return LA_FLG_BINDTO | LA_FLG_BINDFROM;
}
