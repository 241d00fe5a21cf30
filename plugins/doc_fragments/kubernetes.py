# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Documentation of the connection to a Kubernetes cluster."""

from __future__ import annotations


class ModuleDocFragment:
    """Options, defaults and environment as kubernetes.core names them."""

    DOCUMENTATION = r"""
options:
  kubeconfig:
    description:
      - Path of a kubeconfig file, or its content as a dictionary or as text.
      - If neither this option nor E(K8S_AUTH_KUBECONFIG) is set, E(KUBECONFIG) is used, else C(~/.kube/config), else
        the service account of the Pod that runs the module.
      - When this option is given, E(K8S_AUTH_HOST) and credentials in the environment are ignored.
    type: raw
  context:
    description:
      - Context of the kubeconfig to use instead of its current one.
      - Can also be set with E(K8S_AUTH_CONTEXT).
    type: str
  host:
    description:
      - URL of the API server. With O(api_key), O(username) or O(client_cert) no kubeconfig is read.
      - Can also be set with E(K8S_AUTH_HOST).
    type: str
  api_key:
    description:
      - Bearer token.
      - Can also be set with E(K8S_AUTH_API_KEY).
    type: str
  username:
    description:
      - User name for basic authentication, as some proxies in front of API servers use it.
      - Can also be set with E(K8S_AUTH_USERNAME).
    type: str
  password:
    description:
      - Password for basic authentication.
      - Can also be set with E(K8S_AUTH_PASSWORD).
    type: str
  validate_certs:
    description:
      - Whether to verify the API server's certificate. Unset means what the kubeconfig says, else V(true).
      - Can also be set with E(K8S_AUTH_VERIFY_SSL).
    type: bool
    aliases: [verify_ssl]
  ca_cert:
    description:
      - Path of the CA certificate that the API server's certificate is verified with.
      - Can also be set with E(K8S_AUTH_SSL_CA_CERT).
    type: path
    aliases: [ssl_ca_cert]
  client_cert:
    description:
      - Path of a client certificate.
      - Can also be set with E(K8S_AUTH_CERT_FILE).
    type: path
    aliases: [cert_file]
  client_key:
    description:
      - Path of the key of the client certificate.
      - Can also be set with E(K8S_AUTH_KEY_FILE).
    type: path
    aliases: [key_file]
  proxy:
    description:
      - URL of an HTTP proxy on the way to the API server. C(HTTPS_PROXY) is used if this is not set.
      - Can also be set with E(K8S_AUTH_PROXY).
    type: str
  no_proxy:
    description:
      - Comma-separated hosts and domains that are reached without the proxy. C(NO_PROXY) is used if this is not set.
      - Can also be set with E(K8S_AUTH_NO_PROXY).
    type: str
  impersonate_user:
    description:
      - User to act as.
      - Can also be set with E(K8S_AUTH_IMPERSONATE_USER).
    type: str
  impersonate_groups:
    description:
      - Groups to act as a member of.
      - Can also be set with E(K8S_AUTH_IMPERSONATE_GROUPS), comma-separated.
    type: list
    elements: str
requirements:
  - kubernetes >= 24.2.0
  - PyYAML >= 5.4
notes:
  - A connection is looked for in options, C(K8S_AUTH_*) environment variables, kubeconfig, and the service account of
    the Pod, in this order. The return value C(auth_source) tells which it was.
  - Calls that can be repeated safely are repeated on HTTP 429 and 5xx and on broken connections, for at most a minute
    (12 seconds as long as the API server has not answered at all).
"""
