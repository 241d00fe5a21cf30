#!/bin/sh
# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# Succeeds when the server answers a query. Takes the options of the public image's healthcheck.sh (--connect,
# --innodb_initialized) and needs none of them: a query over the socket shows both. The account of that name is the one
# that the server keeps for its own user; it has no password and no way in but this socket.
exec mariadb --no-defaults --user=mysql --batch --skip-column-names --execute='SELECT 1' >/dev/null
