# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Documentation of where the data of a cluster is, for modules that keep it and bring it back."""

from __future__ import annotations


class ModuleDocFragment:
    """Options of modules that read or write archives."""

    DOCUMENTATION = r"""
options:
  passphrase:
    description:
      - Encrypts the archive, or opens one that is encrypted (AES-256-GCM, the key is made by scrypt).
      - Without it the keys of the cluster are readable for whoever can read the file, whose mode is C(0600).
    type: str
  auth_secret:
    description:
      - Secret with the keys of the cluster. Default is the name of the cluster and C(-auth).
    type: str
  database_host:
    description:
      - Host of an accounting database that is not in the namespace. Empty means the Pod of role C(database).
      - It is reached from a Pod that exists for this only, with the image O(database_image).
    type: str
    default: ""
  database_port:
    description:
      - Port of that host.
    type: int
    default: 3306
  database_user:
    description:
      - Account that slurmdbd uses.
    type: str
    default: slurm
  database_name:
    description:
      - Name of the database.
    type: str
    default: slurm_acct_db
  database_secret:
    description:
      - Secret with the password of O(database_user). Default is the name of the cluster and C(-database).
    type: str
  database_secret_key:
    description:
      - Key of the password in that Secret.
    type: str
    default: password
  database_image:
    description:
      - Image with C(mariadb) and C(mariadb-dump), for the Pod that reaches a database elsewhere. The Pod that reads
        and writes archives in a claim has it too.
    type: str
    default: docker.io/library/mariadb:11.8
  database_run_as_user:
    description:
      - User and group that this image runs as.
    type: int
    default: 999
  image_pull_policy:
    description:
      - When images of Pods that exist for the moment are pulled.
    type: str
    default: IfNotPresent
  image_pull_secrets:
    description:
      - Secrets for the registry, as a Pod lists them.
    type: list
    elements: dict
    default: []
  pod_spec:
    description:
      - Further fields of the spec of Pods that exist for the moment, such as C(tolerations).
    type: dict
    default: {}
  s3_endpoint_url:
    description:
      - URL of a server that speaks the protocol of S3, for a bucket. Its certificate is checked against the authorities
        of the system, or those of E(SSL_CERT_FILE).
    type: str
    default: https://s3.amazonaws.com
  s3_region:
    description:
      - Region of the bucket. Empty means to ask the server, which needs the right to do so.
    type: str
    default: ""
  s3_access_key:
    description:
      - Access key for the bucket. Without it E(AWS_ACCESS_KEY_ID) and E(AWS_SECRET_ACCESS_KEY) are taken.
    type: str
  s3_secret_key:
    description:
      - Its secret.
    type: str
  wait_timeout:
    description:
      - Seconds that each stream and each wait may take.
    type: int
    default: 3600
"""
