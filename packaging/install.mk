# `make install` and `make uninstall`: what was built, to where programs and people look for it.
#
#   make && sudo make install                     to /usr/local
#   make install PREFIX=/usr DESTDIR=stage        for a package
#   make install BUILT=<dir>                      files built elsewhere: libmsprof_agent.so, libmsprof_agent.a, msprof
#
# Nothing is built here: who installs is not always who builds.

PREFIX ?= /usr/local
BUILT ?= $(RELEASE)
VERSION := $(shell sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml)

AT = $(DESTDIR)$(PREFIX)
DOC = $(AT)/share/doc/msprof-agent
# Debian has another directory for packages.
ZSH_DIR ?= $(PREFIX)/share/zsh/site-functions
# Directories that nobody else has, each before those in it.
OWN = $(addprefix $(AT)/lib/,msprof-agent msprof-agent/cann msprof-agent/cann-impl cmake/msprof_agent) $(DOC) $(DOC)/docs $(DOC)/examples
PUT = sh packaging/put.sh
# What README.md has for users beside itself; its links lead there. What it has for who works on this stays in the repository.
DOCS := containers.md export.md json.md troubleshooting.md
EXAMPLES := own_ranges.c own_ranges.cpp own_ranges.py msprof_agent.py

.PHONY: install uninstall

# What a shell takes apart, or for a pattern: `make uninstall` would remove something else.
check_paths = @case "$$PLACES" in *[!-A-Za-z0-9_./+:@%,=~]*) echo "PREFIX, DESTDIR, BUILT and ZSH_DIR may not hold blanks or" \
	"characters that a shell takes for its own: $$PLACES" >&2; exit 1;; esac
install uninstall: export PLACES := $(DESTDIR):$(PREFIX):$(BUILT):$(ZSH_DIR)

# A link in the place of a directory of ours leads to somebody else's files, which may have the same names.
define no_links
@for dir in $(OWN); do [ ! -L $$dir ] || rm $$dir || exit 1; done
endef

install:
	$(check_paths)
	@for file in libmsprof_agent.so libmsprof_agent.a msprof; do \
		[ -f "$(BUILT)/$$file" ] || { echo "$(BUILT)/$$file is missing: run make first" >&2; exit 1; }; \
	done
	$(no_links)
	$(PUT) file 755 $(BUILT)/msprof $(AT)/bin/msprof
	$(PUT) file 755 $(BUILT)/libmsprof_agent.so $(AT)/lib/libmsprof_agent.so
	$(PUT) file 644 $(BUILT)/libmsprof_agent.a $(AT)/lib/libmsprof_agent.a
	$(PUT) link ../../libmsprof_agent.so $(AT)/lib/msprof-agent/cann/libprofapi.so
	$(PUT) link ../../libmsprof_agent.so $(AT)/lib/msprof-agent/cann-impl/libprofimpl.so
	$(PUT) file 644 include/msprof_agent.h $(AT)/include/msprof_agent.h
	$(PUT) text $(VERSION) packaging/msprof_agent.pc.in $(AT)/lib/pkgconfig/msprof_agent.pc
	$(PUT) text $(VERSION) packaging/msprof_agent-static.pc.in $(AT)/lib/pkgconfig/msprof_agent-static.pc
	$(PUT) text $(VERSION) packaging/cmake/msprof_agent-config-version.cmake.in $(AT)/lib/cmake/msprof_agent/msprof_agent-config-version.cmake
	$(PUT) file 644 packaging/cmake/msprof_agent-config.cmake $(AT)/lib/cmake/msprof_agent/msprof_agent-config.cmake
	$(PUT) file 644 packaging/msprof.1 $(AT)/share/man/man1/msprof.1
	$(PUT) file 644 packaging/completions/msprof.bash $(AT)/share/bash-completion/completions/msprof
	$(PUT) file 644 packaging/completions/_msprof $(DESTDIR)$(ZSH_DIR)/_msprof
	$(PUT) file 644 packaging/completions/msprof.fish $(AT)/share/fish/vendor_completions.d/msprof.fish
	for file in README.md LICENSE $(addprefix docs/,$(DOCS)); do $(PUT) file 644 $$file $(DOC)/$$file || exit 1; done
	for file in $(EXAMPLES); do $(PUT) file 644 examples/$$file $(DOC)/examples/$$file || exit 1; done
	@# So that programs find the library by its name; only root can, and a stage has no use for it.
	[ -n "$(DESTDIR)" ] || [ "$$(id -u)" != 0 ] || ldconfig

# Links go, not what they lead to. Directories of ours go when nobody else has put anything in them.
uninstall:
	$(check_paths)
	$(no_links)
	rm -f $(AT)/bin/msprof $(AT)/lib/libmsprof_agent.so $(AT)/lib/libmsprof_agent.a $(AT)/include/msprof_agent.h
	rm -f $(AT)/lib/pkgconfig/msprof_agent.pc $(AT)/lib/pkgconfig/msprof_agent-static.pc $(AT)/share/man/man1/msprof.1
	rm -f $(AT)/share/bash-completion/completions/msprof $(DESTDIR)$(ZSH_DIR)/_msprof
	rm -f $(AT)/share/fish/vendor_completions.d/msprof.fish
	rm -f $(AT)/lib/msprof-agent/cann/libprofapi.so $(AT)/lib/msprof-agent/cann-impl/libprofimpl.so
	rm -f $(AT)/lib/cmake/msprof_agent/msprof_agent-config.cmake $(AT)/lib/cmake/msprof_agent/msprof_agent-config-version.cmake
	rm -f $(addprefix $(DOC)/,README.md LICENSE) $(addprefix $(DOC)/docs/,$(DOCS)) $(addprefix $(DOC)/examples/,$(EXAMPLES))
	-@rmdir --ignore-fail-on-non-empty $(AT)/lib/msprof-agent/cann $(AT)/lib/msprof-agent/cann-impl $(AT)/lib/msprof-agent \
		$(AT)/lib/cmake/msprof_agent $(DOC)/docs $(DOC)/examples $(DOC) 2>/dev/null
	[ -n "$(DESTDIR)" ] || [ "$$(id -u)" != 0 ] || ldconfig
