"""What the simulated vendor sells: GPU types, CPU flavors, data centers and images, with list prices.

Identifiers are RunPod's own. Prices are list prices in USD an hour for a single GPU, of the order seen in November
2026; they are data for tests and are not meant to follow the market.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal


@dataclass(frozen=True, slots=True)
class GpuType:
    """One GPU type. `memory` is VRAM in GB; a price of None means the cloud does not offer it."""

    id: str
    name: str
    memory: int
    secure_price: Decimal | None
    community_price: Decimal | None
    max_count: int = 8
    pool: str | None = None
    manufacturer: str = "NVIDIA"


@dataclass(frozen=True, slots=True)
class CpuFlavor:
    """One CPU flavor, priced per vCPU and hour."""

    id: str
    name: str
    group: str
    ram_per_vcpu: Decimal
    price_per_vcpu: Decimal
    min_vcpu: int = 2
    max_vcpu: int = 32


@dataclass(frozen=True, slots=True)
class DataCenter:
    """One data center with its ISO country, and whether the private global network reaches it."""

    id: str
    name: str
    region: str
    country: str
    global_network: bool = False
    volume_types: tuple[str, ...] = ("STANDARD",)


@dataclass(frozen=True, slots=True)
class Image:
    """What pulling an image costs: seconds on a cold host, unpacked size in GB, and whether it exists at all."""

    pull_seconds: float
    size_gb: int = 8
    exists: bool = True


GPU_TYPES: tuple[GpuType, ...] = (
    GpuType("NVIDIA H100 80GB HBM3", "H100 SXM", 80, Decimal("2.69"), Decimal("2.49"), 8, "HOPPER_80"),
    GpuType("NVIDIA H100 PCIe", "H100 PCIe", 80, Decimal("2.39"), Decimal("1.99"), 8, "HOPPER_80"),
    GpuType("NVIDIA H100 NVL", "H100 NVL", 94, Decimal("2.79"), Decimal("2.59"), 8, "HOPPER_80"),
    GpuType("NVIDIA H200", "H200 SXM", 141, Decimal("3.59"), None, 8, "HOPPER_141"),
    GpuType("NVIDIA B200", "B200", 180, Decimal("5.98"), None, 8),
    GpuType("NVIDIA A100-SXM4-80GB", "A100 SXM", 80, Decimal("1.74"), Decimal("1.39"), 8, "AMPERE_80"),
    GpuType("NVIDIA A100 80GB PCIe", "A100 PCIe", 80, Decimal("1.64"), Decimal("1.19"), 8, "AMPERE_80"),
    GpuType("NVIDIA GeForce RTX 4090", "RTX 4090", 24, Decimal("0.69"), Decimal("0.34"), 8, "ADA_24"),
    GpuType("NVIDIA L40S", "L40S", 48, Decimal("0.86"), Decimal("0.79"), 8, "ADA_48_PRO"),
    GpuType("NVIDIA RTX A6000", "RTX A6000", 48, Decimal("0.49"), Decimal("0.33"), 8, "AMPERE_48"),
)

CPU_FLAVORS: tuple[CpuFlavor, ...] = (
    CpuFlavor("cpu3c", "Compute-Optimized", "Gen 3", Decimal(2), Decimal("0.03")),
    CpuFlavor("cpu5c", "Compute-Optimized", "Gen 5", Decimal("2.5"), Decimal("0.04")),
)

DATA_CENTERS: tuple[DataCenter, ...] = (
    DataCenter("US-KS-2", "US Kansas 2", "NORTH_AMERICA", "US", True),
    DataCenter("US-TX-3", "US Texas 3", "NORTH_AMERICA", "US", True, ("STANDARD", "HIGH_PERFORMANCE")),
    DataCenter("US-CA-2", "US California 2", "NORTH_AMERICA", "US", True),
    DataCenter("EU-RO-1", "EU Romania 1", "EUROPE", "RO", True),
    DataCenter("EUR-IS-1", "Europe Iceland 1", "EUROPE", "IS"),
    DataCenter("CA-MTL-1", "Canada Montreal 1", "NORTH_AMERICA", "CA"),
)

CUDA_VERSIONS: tuple[str, ...] = ("13.0", "12.8", "12.6", "12.4")
