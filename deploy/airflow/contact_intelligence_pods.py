"""The DAGs of contact_intelligence.py for Airflow with Kubernetes: each task is a pod of the image.

Copy this file into the DAGs folder, and apply deploy/kubernetes/setup. Needs apache-airflow-providers-cncf-kubernetes.
See docs/airflow.md.
"""

import os
from datetime import datetime, timedelta

try:
    from airflow.sdk import dag
except ImportError:  # Airflow 2
    from airflow.decorators import dag
from airflow.providers.cncf.kubernetes.operators.pod import KubernetesPodOperator
from kubernetes.client import models as k8s

SHARDS = int(os.environ.get("CONTACT_INTELLIGENCE_SHARDS", "10"))
SHARDS_AT_ONCE = int(os.environ.get("CONTACT_INTELLIGENCE_SHARDS_AT_ONCE", "4"))
# Another number of shards makes another plan.
NUMBERS = {
    "SHARDS": str(SHARDS),
    "SHARDS_AT_ONCE": str(SHARDS_AT_ONCE),
    "COMPLETIONS": str(SHARDS),
    "PLAN": f"shards-{SHARDS}",
}
NAME = "contact-intelligence"
# As the cluster's nodes know it.
IMAGE = os.environ.get("CONTACT_INTELLIGENCE_IMAGE", "contact-intelligence/source-contact-intelligence:1.0.0-dev")

POD = {
    "namespace": NAME,
    "image": IMAGE,
    "cmds": ["sh", "/steps/steps.sh"],
    "labels": {"app": NAME},
    "env_from": [
        k8s.V1EnvFromSource(config_map_ref=k8s.V1ConfigMapEnvSource(name=NAME)),
        k8s.V1EnvFromSource(secret_ref=k8s.V1SecretEnvSource(name=NAME)),
    ],
    "volumes": [
        k8s.V1Volume(
            name="data",
            persistent_volume_claim=k8s.V1PersistentVolumeClaimVolumeSource(claim_name=NAME),
        ),
        k8s.V1Volume(name="steps", config_map=k8s.V1ConfigMapVolumeSource(name=f"{NAME}-steps")),
    ],
    "volume_mounts": [
        k8s.V1VolumeMount(name="data", mount_path="/data"),
        k8s.V1VolumeMount(name="steps", mount_path="/steps"),
    ],
    "container_resources": k8s.V1ResourceRequirements(
        requests={"cpu": "250m", "memory": "192Mi", "ephemeral-storage": "64Mi"},
        limits={"memory": "512Mi"},
    ),
    "security_context": {
        "runAsNonRoot": True,
        "runAsUser": 1000,
        "runAsGroup": 1000,
        "fsGroup": 1000,
        "seccompProfile": {"type": "RuntimeDefault"},
    },
    "container_security_context": {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    },
    "automount_service_account_token": False,
    "in_cluster": os.environ.get("KUBERNETES_SERVICE_HOST") is not None,
    "retries": 5,
    "retry_delay": timedelta(seconds=30),
}


@dag(
    dag_id="contact_intelligence_first_load_pods",
    schedule=None,
    start_date=datetime(2026, 1, 1),
    catchup=False,
    max_active_runs=1,
    is_paused_upon_creation=False,  # it only runs when it is triggered
    tags=[NAME],
)
def first_load():
    def step(name: str) -> KubernetesPodOperator:
        return KubernetesPodOperator(task_id=name, arguments=[name], env_vars=NUMBERS, **POD)

    # An index without a line in the plan ends at once.
    shards = KubernetesPodOperator.partial(
        task_id="shard", arguments=["shard"], max_active_tis_per_dag=SHARDS_AT_ONCE, **POD
    ).expand(env_vars=[{**NUMBERS, "JOB_COMPLETION_INDEX": str(index)} for index in range(SHARDS)])
    step("plan") >> shards >> step("finish")


@dag(
    dag_id="contact_intelligence_daily_pods",
    schedule="0 2 * * *",
    start_date=datetime(2026, 1, 1),
    catchup=False,
    max_active_runs=1,
    tags=[NAME],
)
def daily():
    KubernetesPodOperator(task_id="daily", arguments=["daily"], env_vars=NUMBERS, **POD)


first_load()
daily()
